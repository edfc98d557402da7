package drainer

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func anyGroupKey(t *rapid.T) cluster.GroupKey {
	return cluster.GroupKey{
		Job:  cluster.JobKey{Namespace: "default", ID: cluster.JobID(fmt.Sprintf("j%d", rapid.IntRange(0, 2).Draw(t, "job")))},
		Name: fmt.Sprintf("g%d", rapid.IntRange(0, 5).Draw(t, "group")),
	}
}

// Groups by job are what a map of groups is, and no job stays that has none.
func TestWatchedGroups_AgreeWithAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		got, want := watchedGroups{}, map[cluster.GroupKey]*watchedGroup{}
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			g := &watchedGroup{key: anyGroupKey(t)}
			switch known := want[g.key]; {
			case known == nil && rapid.Bool().Draw(t, "add"):
				got.add(g)
				want[g.key] = g
			case known == nil:
				got.remove(g)
			case rapid.Bool().Draw(t, "remove"):
				got.remove(known)
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

// Since when each reason holds is what a table of all reasons says that is filled in
// when one begins to hold, and cleared when it ceases to.
func TestWatchedGroup_HeldSinceAgreesWithATable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var got watchedGroup
		var want [ReasonCount]time.Time
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			now := epoch.Add(time.Duration(step) * time.Second)
			holding := rapid.SliceOfN(rapid.Bool(), int(ReasonCount), int(ReasonCount)).Draw(t, "holding")
			var plan groupPlan
			for r := range plan.holds {
				plan.holds[r] = holding[r]
				switch {
				case !plan.holds[r]:
					want[r] = time.Time{}
				case want[r].IsZero():
					want[r] = now
				}
			}
			got.keepHolds(plan, now)
			must.True(t, want == got.heldSince())
		}
	})
}
