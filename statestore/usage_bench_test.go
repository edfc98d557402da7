package statestore_test

import (
	"fmt"
	"testing"
)

// BenchmarkNodesInUse measures the cost of reading the resources in use on each of a thousand
// nodes: by merging nodes and accounts, or by one lookup of the account of each node. An op reads all
// nodes, from a warm cache.
//
//	go test ./statestore -run '^$' -bench NodesInUse
func BenchmarkNodesInUse(b *testing.B) {
	const nodes, allocs = 1_000, 10_000
	s := newCluster(nodes, allocs, 0).store.Snapshot()
	ways := []struct {
		name string
		live func() int
	}{
		{"side-by-side", func() (live int) {
			for _, u := range s.WorkView().NodesInUse() {
				live += u.Live
			}
			return live
		}},
		{"one-by-one", func() (live int) {
			for n := range s.Nodes() {
				live += s.Usage(n.ID).Live
			}
			return live
		}},
	}
	for _, way := range ways {
		b.Run(fmt.Sprintf("way=%s/nodes=%d", way.name, nodes), func(b *testing.B) {
			for b.Loop() {
				if live := way.live(); live != allocs {
					b.Fatalf("%d allocations are live, not %d", live, allocs)
				}
			}
		})
	}
}
