package journal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// size returns the bytes of a journal in a snapshot.
func size(t *testing.T, j *journal.Journal) int {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.Canonical = true
	var b []byte
	must.NoError(t, codec.NewEncoderBytes(&b, h).Encode(j))
	return len(b)
}

// A journal with the longest texts, the most events and the most groups is within its bounds. The first events
// and the latest stay.
func TestJournal_bounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 2000)
	for name, event := range map[string]journal.Event{
		"short":    {Kind: journal.Changed, Strategy: &cluster.DrainSpec{}},
		"long":     {Kind: journal.Changed, By: long, Why: long, Strategy: &cluster.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}, Allocs: 1 << 40},
		"refusals": {Kind: journal.Refused, By: long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &journal.Journal{Drain: "00000000-0000-0000-0000-000000000000"}
			const count = 300
			for i := range count {
				e := event
				e.At, e.Index = start.Add(time.Duration(i)*time.Second), 1<<60+uint64(i)
				if e.Kind == journal.Refused {
					e.Why = fmt.Sprint(i, long)
				}
				j.Add(e)
			}
			var groups []journal.Group
			for i := range count {
				k := cluster.GroupKey{Job: cluster.JobKey{Namespace: cluster.Namespace(long[:10]), ID: cluster.JobID(fmt.Sprint(i, long[:100]))}, Name: long[:20*(1+i%10)]}
				g := journal.NewGroup(k, 1<<30, 1<<30, start)
				g.Count(1, 1<<30, start)
				groups = append(groups, g)
			}
			j.End(groups, start.Add(time.Hour), 1<<60)
			must.LessEq(t, journal.MaxBytes, size(t, j))
			must.LessEq(t, journal.MaxEvents, len(j.Events))
			must.LessEq(t, journal.MaxGroups, len(j.Groups))
			must.Eq(t, count, len(j.Events)+j.EventsOmitted)
			must.Eq(t, count, len(j.Groups)+j.GroupsOmitted)
			must.Eq(t, start, j.Events[0].At)
			must.Eq(t, start.Add((count-1)*time.Second), j.Events[len(j.Events)-1].At)
			must.Greater(t, 10, len(j.Events))
		})
	}
}

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
