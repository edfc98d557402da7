package world_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// A world can begin with the state of another one. It goes on from its time and its newest index, no new id is in the
// state already, and the other world stays as it was.
func TestFrom(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		before := newFixture(t, o)
		before.drain()
		before.run(t, lasts)
		must.False(t, before.Truth().Node("n1").Draining())
		begun, text := before.Truth(), dumped(t, before.Truth())

		o.From, o.Begin, o.Seed = before.Servers.Fork(), before.Now(), 7
		w, err := world.New(o)
		must.NoError(t, err)
		f := &fixture{World: w, ended: map[int]time.Duration{}}
		f.observe()
		must.Eq(t, text, dumped(t, w.Truth()))
		f.drainNode("n2", 0)
		f.run(t, lasts+lasts)
		must.False(t, w.Truth().Node("n2").Draining())
		must.Eq(t, begun.Index()+1, f.entries[0].Index)
		f.sameStates(t)
		must.Eq(t, text, dumped(t, before.Truth()))
	})
}

func dumped(t *testing.T, s *statestore.Snapshot) string {
	t.Helper()
	var text strings.Builder
	must.NoError(t, statestore.Dump(&text, s))
	return text.String()
}
