package statestore_test

import (
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// A writer reads its own commits, and no reader sees an older state after a newer one.
func TestSnapshot_isTheNewest(t *testing.T) {
	t.Parallel()
	const entries = 500
	store := statestore.New()
	must.Zero(t, store.Snapshot().Index())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last := uint64(0); last < entries; {
				index := store.Snapshot().Index()
				must.GreaterEq(t, last, index)
				last = index
			}
		})
	}
	for index := uint64(1); index <= entries; index++ {
		txn := store.Begin(index)
		if index%3 == 0 {
			txn.Abort()
			txn = store.Begin(index)
		}
		must.Eq(t, index-1, store.Snapshot().Index())
		txn.Commit()
		must.Eq(t, index, store.Snapshot().Index())
	}
	readers.Wait()
}
