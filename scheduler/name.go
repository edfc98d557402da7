package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// allocName is the name of the group's allocation in the slot with the index.
func allocName(j *cluster.Job, g *cluster.TaskGroup, index int) string {
	return fmt.Sprintf("%s.%s[%d]", j.ID, g.Name, index)
}

// nameIndex returns the index in "job.group[index]". Names without an index come last.
func nameIndex(name string) int {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return math.MaxInt
	}
	i, err := strconv.Atoi(name[open+1 : len(name)-1])
	if err != nil || i < 0 {
		return math.MaxInt
	}
	return i
}

// sortByName orders a group's allocations by index, then by age, the oldest first. It
// parses each name once.
func sortByName(allocs []*cluster.Allocation) {
	read := make([]indexed, len(allocs))
	for i, a := range allocs {
		read[i] = indexed{nameIndex(a.Name), a}
	}
	slices.SortFunc(read, indexed.compare)
	for i, r := range read {
		allocs[i] = r.Allocation
	}
}

// indexed is an allocation with the index in its name.
type indexed struct {
	index int
	*cluster.Allocation
}

func (a indexed) compare(b indexed) int {
	if a.index != b.index {
		return cmp.Compare(a.index, b.index)
	}
	return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
}

// names are the names that a group has in use.
type names struct {
	job   *cluster.Job
	group *cluster.TaskGroup
	used  map[string]bool
	// next is below every index that may be free, and first is its name, or empty until it is requested.
	next  int
	first string
}

func (n *names) use(name string) { n.used[name] = true }

// wanted returns the wanted name if it is free, else the one with the lowest free index. The caller
// uses it if it places an allocation of the name.
func (n *names) wanted(wanted string) string {
	if wanted != "" && !n.used[wanted] {
		return wanted
	}
	for {
		if n.first == "" {
			n.first = allocName(n.job, n.group, n.next)
		}
		if !n.used[n.first] {
			return n.first
		}
		n.next, n.first = n.next+1, ""
	}
}
