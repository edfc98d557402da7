package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Restore and Forget start a new term on the same server. The log commits the writes in flight,
// and the drainer writes nothing twice.
func TestRestore(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		for _, restored := range []bool{true, false} {
			for _, when := range []time.Duration{armed, inFlight, drains + 3*time.Second} {
				w := newFixture(t, o)
				w.drain()
				restores := 0
				w.Observe(world.Observer{Restored: func(taken, restored *statestore.Snapshot) {
					restores++
					must.Eq(t, taken.Index(), restored.Index())
				}})
				w.at(when, func() {
					steps := len(w.steps)
					if restored {
						must.NoError(t, w.Servers.Restore())
						must.Len(t, steps+1, w.steps) // on the replaced store
					} else {
						must.NoError(t, w.Servers.Forget())
					}
					must.Eq(t, 0, w.Leader())
					must.Eq(t, 2, w.Term())
				})
				w.run(t, lasts)
				must.Eq(t, restored, restores == 1)
				must.Eq(t, when, w.ended[1])
				must.Nil(t, nth[marks](w, 1))
				must.False(t, w.State().Node("n1").Draining())
				w.sameStates(t)
				must.NoError(t, checkLog(w, map[string]int{}))
				if marked := first[marks](w); when == inFlight {
					must.Eq(t, raftwrite.Unknown, marked.answer.Outcome)
					must.True(t, w.logged(marked))
				}
			}
		}
	})
}

// A paused drainer takes no step when a snapshot is restored.
func TestRestore_paused(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	w.at(armed, func() {
		w.Servers.Pause(0, time.Minute)
		must.NoError(t, w.Servers.Restore())
	})
	w.run(t, lasts)
	must.Eq(t, 0, w.stepped(armed-1, armed+time.Minute))
	must.Positive(t, w.stepped(armed+time.Minute-1, lasts))
}
