package statestore

import (
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// jobVersions are the distinct versions of jobs in a state: those of the jobs table and
// those of allocations. Two equal versions count once even if they are different objects, so
// that equal states have equal lists.
type jobVersions struct {
	// texts are their encodings, sorted.
	texts []string
	// number is the position of a version in texts, counted from one.
	number map[*cluster.Job]int
}

// jobVersions lists the versions of jobs, encoded by encode.
func (s *Snapshot) jobVersions(encode func(*cluster.Job) (string, error)) (jobVersions, error) {
	text := make(map[*cluster.Job]string)
	var err error
	note := func(j *cluster.Job) bool {
		if _, known := text[j]; !known && j != nil {
			text[j], err = encode(j)
		}
		return err == nil
	}
	for j := range s.Jobs() {
		if !note(j) {
			return jobVersions{}, err
		}
	}
	for a := range s.Allocs() {
		if !note(a.Job) {
			return jobVersions{}, err
		}
	}
	v := jobVersions{number: make(map[*cluster.Job]int, len(text))}
	v.texts = slices.Compact(slices.Sorted(maps.Values(text)))
	for j, t := range text {
		at, _ := slices.BinarySearch(v.texts, t)
		v.number[j] = at + 1
	}
	return v, nil
}
