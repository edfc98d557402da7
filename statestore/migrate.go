package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// MigrateAlloc marks an allocation to leave its node, without a drain. The scheduler stops it and
// places its replacement. An allocation that is leaving or has ended does not change. The error is
// [ErrAllocNotFound].
func MigrateAlloc(t *Txn, id cluster.AllocID, at time.Time) error {
	at = at.UTC()
	allocs := t.editAllocs()
	a := allocs.look(id)
	switch {
	case a == nil:
		return ErrAllocNotFound
	case a.Leaving() || a.ClientTerminal():
		return nil
	}
	edited := allocs.edit(a, at)
	edited.DesiredTransition.Migrate = true
	edited.AllocModifyIndex = t.written.index
	allocs.write()
	return nil
}
