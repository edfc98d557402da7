package statestore

import (
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// WorkView is a state as those read it who place work and delete ended work: the scheduler, the
// collection and the claims of volumes.
type WorkView struct{ lists }

// CapacityIndex is the raft index of the last entry that may have added capacity: a node became
// ready or fits more work, an allocation ended, or a volume was registered or freed.
func (v WorkView) CapacityIndex() uint64 { return watchedCounters(v.tables).Capacity }

// NodesInUse yields all nodes by id, each with its Usage. It merges the nodes with their
// accounts, which are both ordered by node id: one lookup of each account is at least six times
// slower with a thousand nodes (go test ./statestore -run '^$' -bench NodesInUse).
func (v WorkView) NodesInUse() iter.Seq2[*cluster.Node, cluster.Usage] {
	return func(yield func(*cluster.Node, cluster.Usage) bool) {
		accounts := iterate(v.tables, tableLedger, indexID, key{accountOfNode})
		at, _ := accounts.Next().(*usage)
		for n := range v.Nodes() {
			for at != nil && at.NodeID < n.ID { // a deleted node with allocations
				at, _ = accounts.Next().(*usage)
			}
			u := &usage{}
			if at != nil && at.NodeID == n.ID {
				u = at
			}
			if edited := editedUsage(v.tables, n.ID); edited != nil {
				u = edited
			}
			if !yield(n, u.Usage) {
				return
			}
		}
	}
}

// OccupiedNodes yields the ids of the nodes with allocations that are not client-terminal,
// in order. The nodes need not exist.
func (v WorkView) OccupiedNodes() iter.Seq[cluster.NodeID] {
	return func(yield func(cluster.NodeID) bool) {
		if v.written != nil && len(v.written.usage) > 0 {
			slices.Values(occupiedWithEdits(v.tables))(yield)
			return
		}
		for u := range scan[usage](v.tables, tableLedger, indexID, key{accountOfNode}) {
			if !yield(u.NodeID) {
				return
			}
		}
	}
}

// occupiedWithEdits returns the ids of OccupiedNodes in a transaction that has not yet written its
// accounts to rows.
func occupiedWithEdits(t *tables) (ids []cluster.NodeID) {
	for u := range scan[usage](t, tableLedger, indexID, key{accountOfNode}) {
		if t.written.usage[u.NodeID] == nil {
			ids = append(ids, u.NodeID)
		}
	}
	//lint:order the ids are sorted below
	for id, edit := range t.written.usage {
		if edit.after.Live > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// JobsOnEveryNode yields the jobs that run on every fitting node, by namespace and id.
func (v WorkView) JobsOnEveryNode() iter.Seq[*cluster.Job] {
	return scan[cluster.Job](v.tables, TableJobs, indexEveryNode, nil)
}

// LiveAllocsByNode yields the node's allocations that are not client-terminal, in the order
// of [State.AllocsByNode].
func (v WorkView) LiveAllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](v.tables, TableAllocs, indexNode, newKey(id).bool(false))
}

// Unconfirmed is [DrainView.Unconfirmed].
func (v WorkView) Unconfirmed(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return DrainView{v.lookups}.Unconfirmed(id)
}

// UnconcludedAllocs yields a job's allocations that are not [cluster.Allocation.Concluded], and
// those of [DrainView.GroupAllocs]; by group, and within a group the allocations of GroupAllocs by
// id, then the others by id.
func (v WorkView) UnconcludedAllocs(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](v.tables, TableAllocs, indexGroup, unconcluded(k))
}

// OpenEvals is [DrainView.OpenEvals].
func (v WorkView) OpenEvals(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return DrainView{v.lookups}.OpenEvals(k)
}

// PendingEvals yields the evaluations that wait for the scheduler: higher
// priority first, then by creation index, then id.
func (v WorkView) PendingEvals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](v.tables, TableEvals, indexLists, queue(cluster.EvalPending))
}

// BlockedEvals yields the evaluations that wait for capacity, in the order of
// PendingEvals.
func (v WorkView) BlockedEvals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](v.tables, TableEvals, indexLists, queue(cluster.EvalBlocked))
}

// Claim returns the claim, or nil.
func (v WorkView) Claim(k cluster.ClaimKey) *cluster.VolumeClaim {
	return first[cluster.VolumeClaim](v.tables, TableClaims, indexID, claimKey(k))
}

// Claims yields all claims by volume and allocation.
func (v WorkView) Claims() iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](v.tables, TableClaims, indexID, nil)
}

// ClaimsOfAlloc yields the claims of the allocation, by volume. The allocation need not exist.
func (v WorkView) ClaimsOfAlloc(a cluster.AllocID) iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](v.tables, TableClaims, indexLists, inList(listClaimAlloc, a))
}
