package statestore

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State reads one state: that of a [Snapshot], or that of a [Txn] with its writes so far. The
// drainer and the scheduler have views of their own, whose cost depends only on the rows that they
// need.
type State struct{ lists }

func stateOf(t *tables) State { return State{lists{lookups{t}}} }

// DrainView returns the state as the drainer reads it.
func (s State) DrainView() DrainView { return DrainView{s.lookups} }

// WorkView returns the state as the scheduler and the collection of ended work read it.
func (s State) WorkView() WorkView { return WorkView(s) }

// lookups are the reads that all views have.
type lookups struct{ *tables }

// Index is the raft index of the newest entry in the state.
func (l lookups) Index() uint64 { return watchedCounters(l.tables).Entry }

// Node returns the node, or nil.
func (l lookups) Node(id cluster.NodeID) *cluster.Node {
	return first[cluster.Node](l.tables, TableNodes, indexID, lone(id))
}

// Job returns the current version of the job, or nil.
func (l lookups) Job(k cluster.JobKey) *cluster.Job {
	return first[cluster.Job](l.tables, TableJobs, indexID, jobKey(k))
}

// Alloc returns the allocation, or nil.
func (l lookups) Alloc(id cluster.AllocID) *cluster.Allocation {
	return first[cluster.Allocation](l.tables, TableAllocs, indexID, lone(id))
}

// lists are the reads that [State] and [WorkView] have.
type lists struct{ lookups }

// ClusterVersion is the cluster version of the state.
func (l lists) ClusterVersion() cluster.Version { return versionIn(l.tables) }

// Nodes yields all nodes by id.
func (l lists) Nodes() iter.Seq[*cluster.Node] {
	return scan[cluster.Node](l.tables, TableNodes, indexID, nil)
}

// Usage sums up the resources of the node's allocations that are not client-terminal.
func (l lists) Usage(id cluster.NodeID) cluster.Usage { return usageOf(l.tables, id).Usage }

// Jobs yields the current versions of all jobs, by namespace and id.
func (l lists) Jobs() iter.Seq[*cluster.Job] {
	return scan[cluster.Job](l.tables, TableJobs, indexID, nil)
}

// Eval returns the evaluation, or nil.
func (l lists) Eval(id cluster.EvalID) *cluster.Evaluation {
	return first[cluster.Evaluation](l.tables, TableEvals, indexID, lone(id))
}

// Evals yields all evaluations by id.
func (l lists) Evals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](l.tables, TableEvals, indexID, nil)
}

// EvalsByJob yields a job's evaluations: the open ones first, then the others,
// each by creation index and id.
func (l lists) EvalsByJob(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](l.tables, TableEvals, indexLists, evalsOfJob(k))
}

// Allocs yields all allocations by id.
func (l lists) Allocs() iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](l.tables, TableAllocs, indexID, nil)
}

// AllocsByJob yields a job's allocations: first those of [WorkView.UnconcludedAllocs], then the
// others by group and id.
func (l lists) AllocsByJob(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](l.tables, TableAllocs, indexGroup, jobKey(k))
}

// Volume returns the volume, or nil.
func (l lists) Volume(k cluster.VolumeKey) *cluster.Volume {
	return first[cluster.Volume](l.tables, TableVolumes, indexID, volumeKey(k))
}

// ClaimsOfVolume yields the claims of the volume: those that write first, then by allocation. The
// volume need not exist.
func (l lists) ClaimsOfVolume(k cluster.VolumeKey) iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](l.tables, TableClaims, indexLists, claimsOfVolume(k))
}

// ClaimsOnNode yields the claims of allocations on the node, by volume and allocation. The node may
// be deleted.
func (l lists) ClaimsOnNode(n cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](l.tables, TableClaims, indexLists, inList(listClaimNode, n))
}

// TableIndex is the raft index of the last entry that wrote to the table, or zero.
func (s State) TableIndex(table string) uint64 {
	index := s.counters.of(table)
	if index == nil {
		return 0
	}
	if s.ws != nil { // not the counters, which every entry changes
		iterate(s.tables, table, indexID, nil)
	}
	return *index
}

// Draining returns the nodes that drain, by id, and the pause of all drains, or nil.
func (s State) Draining() (nodes iter.Seq[*cluster.Node], pause *cluster.DrainPause) {
	return s.DrainView().DrainingNodes(), s.DrainView().DrainPause()
}

// Drains yields the records of ended drains by (EndIndex, id): oldest first.
func (s State) Drains() iter.Seq[*cluster.Drain] {
	return scan[cluster.Drain](s.tables, TableDrains, indexAge, nil)
}

// DrainsByNode yields the records of a node's ended drains, oldest first. The node may be
// deleted.
func (l lists) DrainsByNode(id cluster.NodeID) iter.Seq[*cluster.Drain] {
	return scan[cluster.Drain](l.tables, TableDrains, indexNode, newKey(id))
}

// DrainRecord returns the record of an ended drain, or nil if the drain runs, never existed,
// or its record was deleted.
func (s State) DrainRecord(id cluster.DrainID) *cluster.Drain {
	return first[cluster.Drain](s.tables, TableDrains, indexID, lone(id))
}

// AllocsByNode yields a node's allocations: first those that are not client-terminal, by
// stage, by whether they are leaving, and by id; then the unconfirmed ones by id; then the others by
// id. The node need not exist.
func (s State) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](s.tables, TableAllocs, indexNode, newKey(id))
}

// Volumes yields all volumes by namespace and id.
func (s State) Volumes() iter.Seq[*cluster.Volume] {
	return scan[cluster.Volume](s.tables, TableVolumes, indexID, nil)
}
