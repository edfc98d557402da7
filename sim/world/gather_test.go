package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// With Gather, clients send their reports only at multiples of that duration. No report is
// missing.
func TestOptions_Gather(t *testing.T) {
	t.Parallel()
	const gather = 7 * time.Second
	plain := newFixture(t, world.Options{})
	gathered := newFixture(t, world.Options{Gather: gather})
	for _, w := range []*fixture{plain, gathered} {
		w.drain()
		w.run(t, lasts)
	}
	sent := func(w *fixture) (times int) {
		for _, e := range w.entries {
			if m, is := e.Message.(*shims.AllocClientUpdate); is {
				times += len(m.Reports)
			}
		}
		return times
	}
	must.Eq(t, sent(plain), sent(gathered))
	at := gathered.reported("n1", cluster.ClientComplete)
	must.Less(t, at, plain.reported("n1", cluster.ClientComplete))
	must.Zero(t, (at-commits)%gather)
}
