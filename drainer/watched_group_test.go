package drainer

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

func anyGroupKey(t *rapid.T) cluster.GroupKey {
	return cluster.GroupKey{
		Job:  cluster.JobKey{Namespace: "default", ID: cluster.JobID(fmt.Sprintf("j%d", rapid.IntRange(0, 2).Draw(t, "job")))},
		Name: fmt.Sprintf("g%d", rapid.IntRange(0, 5).Draw(t, "group")),
	}
}

// watchedGroups agrees with a map of groups, and keeps no job without groups.
func TestWatchedGroups_AgreeWithAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got, want := watchedGroups{}, map[cluster.GroupKey]*watchedGroup{}
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			g := &watchedGroup{key: anyGroupKey(t)}
			switch member := want[g.key]; {
			case member == nil && rapid.Bool().Draw(t, "add"):
				got.add(g)
				want[g.key] = g
			case member == nil:
				got.remove(g)
			case rapid.Bool().Draw(t, "remove"):
				got.remove(member)
				delete(want, g.key)
			}
			key := anyGroupKey(t)
			must.True(t, got.get(key) == want[key])
			count := 0
			for job, groups := range got {
				for i, g := range groups {
					if job != g.key.Job || g != want[g.key] || i > 0 && groups[i-1].Compare(g) >= 0 {
						t.Fatalf("%v is at %d of %v", g.key, i, job)
					}
				}
				count += len(groups)
				must.SliceNotEmpty(t, groups)
			}
			must.Eq(t, len(want), count)
		}
	})
}

// The times of holds agree with a table of all reasons.
func TestWatchedGroup_NoteHoldsAgreesWithATable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var got watchedGroup
		want := map[rules.Reason]time.Time{}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			now := fixture.Epoch.Add(time.Duration(step) * time.Second)
			holding := [rules.ReasonCount]bool(rapid.SliceOfN(rapid.Bool(), int(rules.ReasonCount), int(rules.ReasonCount)).Draw(t, "holding"))
			for r, holds := range holding {
				if before := want[rules.Reason(r)]; holds && before.IsZero() {
					want[rules.Reason(r)] = now
				} else if !holds {
					delete(want, rules.Reason(r))
				}
			}
			got.noteHolds(holding, now)
			since := map[rules.Reason]time.Time{}
			for _, h := range got.held {
				since[h.reason] = h.since
			}
			must.Eq(t, want, since)
			must.Len(t, len(want), got.held)
		}
	})
}

// The nodes on which a group has fewer allocations are the difference of two multisets.
func TestDeparted_AgreesWithCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := func(what string) []cluster.NodeID {
			return slices.Sorted(slices.Values(rapid.SliceOfN(rapid.SampledFrom([]cluster.NodeID{"a", "b", "c", "d"}), 0, 8).Draw(t, what)))
		}
		before, after := nodes("before"), nodes("after")
		left := map[cluster.NodeID]int{}
		for _, id := range before {
			left[id]++
		}
		for _, id := range after {
			left[id] = max(0, left[id]-1)
		}
		var want []cluster.NodeID
		for _, id := range slices.Sorted(maps.Keys(left)) {
			want = append(want, slices.Repeat([]cluster.NodeID{id}, left[id])...)
		}
		must.Eq(t, want, departed(before, after))
	})
}
