package agent

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// A server differs if a majority of all servers has another state at the same index. Absent servers,
// and those that answer for another index, count for neither side.
func TestCompare(t *testing.T) {
	t.Parallel()
	const same, differs, undecided = httpapi.StateSame, httpapi.StateDiffers, httpapi.StateUndecided
	at := func(index uint64, sum string) stateDigest { return stateDigest{index, sum} }
	absent := stateDigest{}
	for name, c := range map[string]struct {
		answers []stateDigest
		want    []httpapi.Agreement // "" is no verdict
	}{
		"all the same":                 {[]stateDigest{at(9, "a"), at(9, "a"), at(9, "a")}, []httpapi.Agreement{same, same, same}},
		"one differs":                  {[]stateDigest{at(9, "a"), at(9, "b"), at(9, "a")}, []httpapi.Agreement{same, differs, same}},
		"the same, one absent":         {[]stateDigest{at(9, "a"), absent, at(9, "a")}, []httpapi.Agreement{same, "", same}},
		"no majority, one absent":      {[]stateDigest{at(9, "a"), absent, at(9, "b")}, []httpapi.Agreement{undecided, "", undecided}},
		"all different":                {[]stateDigest{at(9, "a"), at(9, "b"), at(9, "c")}, []httpapi.Agreement{undecided, undecided, undecided}},
		"another index":                {[]stateDigest{at(9, "a"), at(8, "b"), at(9, "a")}, []httpapi.Agreement{same, "", same}},
		"no shared index":              {[]stateDigest{at(9, "a"), at(8, "b"), at(7, "c")}, []httpapi.Agreement{"", "", ""}},
		"no answers":                   {[]stateDigest{absent, absent, absent}, []httpapi.Agreement{"", "", ""}},
		"the index of most":            {[]stateDigest{at(9, "a"), at(8, "b"), at(8, "b")}, []httpapi.Agreement{"", same, same}},
		"two servers":                  {[]stateDigest{at(9, "a"), at(9, "b")}, []httpapi.Agreement{undecided, undecided}},
		"two of five are no majority":  {[]stateDigest{at(9, "a"), at(9, "a"), at(9, "b"), absent, absent}, []httpapi.Agreement{undecided, undecided, undecided, "", ""}},
		"three of five are a majority": {[]stateDigest{at(9, "b"), at(9, "a"), at(9, "a"), at(9, "a"), at(9, "c")}, []httpapi.Agreement{differs, same, same, same, differs}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var servers []raft.Server
			answers := map[raft.ServerID]stateDigest{}
			for i, answer := range c.answers {
				id := raft.ServerID(rune('1' + i))
				servers = append(servers, raft.Server{ID: id})
				if answer.Index > 0 {
					answers[id] = answer
				}
			}
			verdicts := compare(servers, answers)
			for i, s := range servers {
				must.Eq(t, c.want[i], verdicts[s.ID].Agreement, must.Sprint("server ", s.ID))
			}
		})
	}
}
