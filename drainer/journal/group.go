package journal

import (
	"cmp"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Running is a group of a drain that has not ended. It is a row of its own, so that a change of the health of one
// group writes no other.
type Running struct {
	Drain cluster.DrainID
	Group
}

// Group is what a drain did to one group.
type Group struct {
	Key cluster.GroupKey `codec:"G"`
	// Marked counts the allocations that the drain marked.
	Marked int `codec:"M"`
	// Healthy counts the healthy allocations after the newest entry.
	Healthy int `codec:"H"`
	// Lowest is the least that Healthy was.
	Lowest int `codec:"L"`
	// Needed is how many healthy allocations the budget of the group required when Healthy fell to Lowest.
	// It is negative if the budget permits more than the count.
	Needed int `codec:"R"`
	// LowestAt is when Healthy first fell to Lowest.
	LowestAt time.Time `codec:"A"`
	// LowestFor is how long Healthy was Lowest, without the time since Since.
	LowestFor time.Duration `codec:"F,omitempty"`
	// Since is since when Healthy is Lowest, or zero if it is not now.
	Since time.Time `codec:"S,omitempty"`
}

// NewGroup returns the group when the drain marks the first of its allocations. healthy is the count after that
// entry, and needed is how many the budget of the group requires.
func NewGroup(k cluster.GroupKey, healthy, needed int, at time.Time) Group {
	at = at.UTC()
	return Group{Key: k, Healthy: healthy, Lowest: healthy, Needed: needed, LowestAt: at, Since: at}
}

// Count notes the number of healthy allocations after an entry.
func (g *Group) Count(healthy, needed int, at time.Time) {
	at = at.UTC()
	g.Healthy = healthy
	switch {
	case healthy < g.Lowest:
		g.Lowest, g.Needed, g.LowestAt, g.LowestFor, g.Since = healthy, needed, at, 0, at
	case healthy > g.Lowest:
		g.rise(at)
	case g.Since.IsZero():
		g.Since = at
	}
}

// rise ends the present time at the lowest health. Clocks of leaders differ, so a time may be before the last one.
func (g *Group) rise(at time.Time) {
	if !g.Since.IsZero() {
		g.LowestFor += max(0, at.Sub(g.Since))
		g.Since = time.Time{}
	}
}

// Below returns by how much the group was below its budget at its lowest, or zero.
func (g Group) Below() int { return max(0, g.Needed-g.Lowest) }

// bytes is the most that the group takes in a snapshot.
func (g Group) bytes() int {
	return 80 + len(g.Key.Job.Namespace) + len(g.Key.Job.ID) + len(g.Key.Name)
}

func compareKey(a, b Group) int { return a.Key.Compare(b.Key) }

// compareHarm orders groups by how far they were below their budgets, then by how long, then by key.
func compareHarm(a, b Group) int {
	return cmp.Or(cmp.Compare(b.Below(), a.Below()), cmp.Compare(a.Lowest, b.Lowest), cmp.Compare(b.LowestFor, a.LowestFor), compareKey(a, b))
}
