package world

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// claims adds a line for each claim that an entry has created, changed or freed.
func (t *Transcript) claims(a shims.Applied) {
	if a.After.TableIndex(statestore.TableClaims) == a.Before.TableIndex(statestore.TableClaims) {
		return
	}
	about := func(c *cluster.VolumeClaim, state *statestore.Snapshot, format string, args ...any) {
		t.line("  %s for %s: %s", c.Volume.ID, t.names(state, []cluster.AllocID{c.Alloc}), fmt.Sprintf(format, args...))
	}
	for c := range a.Before.Claims() {
		switch now := a.After.Claim(c.Key()); {
		case now == nil:
			about(c, a.Before, "freed")
		case now.State != c.State:
			about(c, a.Before, "%s", now.State)
		case now.Attached && !c.Attached:
			about(c, a.Before, "attached")
		}
	}
	for c := range a.After.Claims() {
		if a.Before.Claim(c.Key()) == nil {
			about(c, a.After, "claimed")
		}
	}
}
