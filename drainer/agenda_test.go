package drainer

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// An agenda agrees with a set of due keys and a map of times.
func TestAgenda_AgreesWithMaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a agenda[cluster.NodeID]
		due, later := map[cluster.NodeID]bool{}, map[cluster.NodeID]time.Time{}
		now := fixture.Epoch
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			id := anyKey(t)
			switch rapid.IntRange(0, 5).Draw(t, "move") {
			case 0:
				a.Now(id)
				due[id] = true
			case 1:
				at := now.Add(fixture.Seconds(t, -2, 8, "in"))
				a.At(id, at)
				later[id] = at
			case 2:
				a.At(id, time.Time{})
				delete(later, id)
			case 3:
				a.Drop(id)
				delete(due, id)
				delete(later, id)
			case 4:
				now = now.Add(fixture.Seconds(t, 0, 4, "passes"))
				a.Ring(now)
				for id, at := range later {
					if !now.Before(at) {
						due[id] = true
						delete(later, id)
					}
				}
			case 5:
				var want []cluster.NodeID
				for id := range due {
					want = append(want, id)
					delete(later, id)
				}
				slices.Sort(want)
				must.Eq(t, want, slices.Clip(append([]cluster.NodeID(nil), a.Take()...)))
				clear(due)
			}
			at, waits := later[id]
			must.Eq(t, due[id] || (waits && !now.Before(at)), a.Has(id, now))
			must.Eq(t, len(due) > 0, a.Pending())
			first := time.Time{}
			for _, at := range later {
				first = earliest(first, at)
			}
			must.Eq(t, first, a.First())
		}
	})
}
