package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// What clients have to say of their own accord they say at whole multiples of the time for
// which they gather it, and all of it is said.
func TestOptions_Gather(t *testing.T) {
	t.Parallel()
	const gather = 7 * time.Second
	plain := newTown(t, world.Options{})
	gathered := newTown(t, world.Options{Gather: gather})
	for _, w := range []*town{plain, gathered} {
		w.drain()
		w.run(t, lasts)
	}
	said := func(w *town) (times int) {
		for _, e := range w.entries {
			if m, is := e.Message.(*shims.AllocClientUpdate); is {
				times += len(m.Reports)
			}
		}
		return times
	}
	must.Eq(t, said(plain), said(gathered))
	stopped := func(r cluster.AllocReport) bool { return r.ClientStatus == cluster.ClientComplete }
	was, is := plain.reported("n1", stopped), gathered.reported("n1", stopped)
	must.Less(t, is, was)
	must.Zero(t, (is-commits)%gather)
}
