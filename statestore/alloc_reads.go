package statestore

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// allocReads reads allocations and the accounts of their groups.
type allocReads struct{ *tables }

// Alloc returns the allocation, or nil.
func (r allocReads) Alloc(id cluster.AllocID) *cluster.Allocation {
	return first[cluster.Allocation](r.tables, TableAllocs, indexID, lone(id))
}

// Allocs yields all allocations by id.
func (r allocReads) Allocs() iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, TableAllocs, indexID, nil)
}

// AllocsByNode yields a node's allocations: first those that are not client-terminal, by
// stage, by whether they are leaving, and by id; then the others by id. The node need not
// exist.
func (r allocReads) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, TableAllocs, indexNode, newKey(id))
}

// LiveAllocsByNode yields the node's allocations that are not client-terminal, in the order
// of AllocsByNode.
func (r allocReads) LiveAllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, TableAllocs, indexNode, newKey(id).bool(false))
}

// NodeAllocs yields the node's allocations of the stage that are not client-terminal, by id:
// those that are leaving, or those that are not.
func (r allocReads) NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, TableAllocs, indexNode, liveOnNode(n, s, leaving))
}

// AllocsByJob yields a job's allocations: first those of UnconcludedAllocs, then the others by
// group and id.
func (r allocReads) AllocsByJob(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, TableAllocs, indexGroup, jobKey(k))
}

// UnconcludedAllocs yields a job's allocations that are not [cluster.Allocation.Concluded], and
// those of GroupAllocs; by group, and within a group the allocations of GroupAllocs by id, then
// the others by id.
func (r allocReads) UnconcludedAllocs(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, TableAllocs, indexGroup, unconcluded(k))
}

// GroupAllocs yields the group's allocations by id: all that are not client-terminal, and
// the client-terminal canaries that a drain marked and that have no replacement yet.
func (r allocReads) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, TableAllocs, indexGroup, inGroup(g))
}

// DrainAllocs yields the allocations that the drain has marked, by id, with any status. It leaves
// out withdrawn marks.
func (r allocReads) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for m := range scan[markRow](r.tables, tableMarks, indexID, newKey(d)) {
			if !yield(r.Alloc(m.Alloc)) {
				return
			}
		}
	}
}
