package statestore_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// BenchmarkLarge measures single operations on a large cluster.
//
//	go test ./statestore -run '^$' -bench Large
func BenchmarkLarge(b *testing.B) {
	c := newCluster(largeNodes, largeAllocs, 0)
	at := time.Unix(1_000_000, 0)
	group := c.allocs[0].GroupKey()
	b.Run("heartbeat", func(b *testing.B) {
		for i := range b.N {
			c.write(func(x *statestore.Txn) { check(x.UpdateNodeStatus(c.nodes[i%largeNodes], cluster.NodeReady, at)) })
		}
	})
	b.Run("report", func(b *testing.B) {
		for i := range b.N {
			a := c.allocs[i%largeAllocs]
			r := cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, ClientDescription: fmt.Sprint(i)}
			c.write(func(x *statestore.Txn) { x.UpdateAllocsFromClient([]cluster.AllocReport{r}, time.Time{}) })
		}
	})
	b.Run(fmt.Sprintf("read-group-of-%d", groupSize), func(b *testing.B) {
		for range b.N {
			for range c.store.Snapshot().DrainView().GroupAllocs(group) {
			}
		}
	})
	b.Run("persist", func(b *testing.B) {
		for range b.N {
			check(statestore.Persist(io.Discard, c.store.Snapshot()))
		}
	})
	var state bytes.Buffer
	check(statestore.Persist(&state, c.store.Snapshot()))
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(state.Len()))
		for range b.N {
			_, err := statestore.Restore(bytes.NewReader(state.Bytes()))
			check(err)
		}
	})
}
