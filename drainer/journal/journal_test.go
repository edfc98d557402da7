package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// The journal of an ended drain keeps the groups that were farthest below their budgets.
func TestJournal_theLowestGroupsStay(t *testing.T) {
	t.Parallel()
	j := &journal.Journal{Drain: "d"}
	var groups []journal.Group
	for i := range 2 * journal.MaxGroups {
		g := journal.NewGroup(cluster.GroupKey{Name: fmt.Sprintf("g%02d", i)}, 100, 100, start)
		g.Count(100-i, 100, start)
		groups = append(groups, g)
	}
	j.End(groups, start, 1)
	must.Eq(t, journal.MaxGroups, j.GroupsOmitted)
	must.Eq(t, "g32", j.Groups[0].Key.Name)
	must.Eq(t, "g63", j.Groups[len(j.Groups)-1].Key.Name)
}

// How long a group was at its lowest counts all times at that number. A lower number begins from zero. A leader
// whose clock is behind adds no time.
func TestGroup_lowest(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for name, test := range map[string]struct {
		healthy []int // at seconds 1, 2, 3, ...
		lowest  int
		time    time.Duration
	}{
		"never changes":         {nil, 3, 5 * time.Second},
		"rises at once":         {[]int{4}, 3, time.Second},
		"falls and stays":       {[]int{2}, 2, 4 * time.Second},
		"falls twice":           {[]int{2, 3, 2, 3}, 2, 2 * time.Second},
		"falls lower":           {[]int{2, 3, 1, 2}, 1, time.Second},
		"the same number again": {[]int{3, 3, 4}, 3, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := journal.NewGroup(cluster.GroupKey{Name: "g"}, 3, 2, at(0))
			for i, n := range test.healthy {
				g.Count(n, 2, at(i+1))
			}
			j := new(journal.Journal)
			j.End([]journal.Group{g}, at(5), 9)
			must.Eq(t, test.lowest, j.Groups[0].Lowest)
			must.Eq(t, test.time, j.Groups[0].LowestFor)
		})
	}
	t.Run("a clock that is behind", func(t *testing.T) {
		t.Parallel()
		g := journal.NewGroup(cluster.GroupKey{}, 3, 2, at(5))
		g.Count(4, 2, at(1))
		must.Zero(t, g.LowestFor)
		must.True(t, g.Since.IsZero())
	})
}
