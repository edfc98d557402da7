package invariant

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// hasToLeave reports whether the drain of the allocation's node has to wait for it: the request
// does not exclude it. The node drains.
func (a *alloc) hasToLeave() bool {
	d := a.node.drain()
	if !d.Strategy.IgnoreSystemJobs || a.stage == opinion.Consumer {
		return true
	}
	return !opinion.Excluded(a.row, d, a.node.rows(), a.node.tables.volumes)
}

// rows yields the rows of the node's live allocations.
func (n *node) rows() iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for _, a := range n.live {
			if !yield(a.row) {
				return
			}
		}
	}
}

// volumes reads a state without the store's indexes of claims.
type volumes struct{ *statestore.Snapshot }

var _ opinion.Volumes = volumes{}

func (v volumes) ClaimsOnNode(n cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return func(yield func(*cluster.VolumeClaim) bool) {
		for c := range v.Claims() {
			if c.Node == n && !yield(c) {
				return
			}
		}
	}
}

// mayExclude returns the nodes on which the entry may change the storage plugins that a drain
// excludes: the nodes of system allocations that ended, and all draining nodes if the entry changes
// volumes.
func (e *entry) mayExclude(b *tables) (nodes []*node) {
	switch e.Message.(type) {
	case *shims.VolumeDeregister, *shims.VolumeDetach, *shims.ClaimUpdate:
		nodes = append(nodes, b.draining...)
	}
	for _, c := range e.allocs {
		if c.before != nil && opinion.Live(c.before) && opinion.StageOf(c.before) == opinion.System {
			nodes = append(nodes, b.node(c.before.NodeID))
		}
	}
	return nodes
}
