package scheduler

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// View is one consistent state of the cluster. The scheduler does not change returned
// objects. Each sequence has a fixed order. Only the order of the queues affects decisions.
type View interface {
	// Index is the raft index of the newest entry in the view.
	Index() uint64
	// ClusterVersion decides which rules apply. A plan must be judged alike on every server.
	ClusterVersion() cluster.Version
	// Node returns the node, or nil.
	Node(cluster.NodeID) *cluster.Node
	// NodesInUse yields all nodes, each with its Usage.
	NodesInUse() iter.Seq2[*cluster.Node, cluster.Usage]
	// Job returns the current version of the job, or nil.
	Job(cluster.JobKey) *cluster.Job
	// Jobs yields the current versions of all jobs.
	Jobs() iter.Seq[*cluster.Job]
	// JobsOnEveryNode yields the current versions of the jobs that run on every node
	// ([cluster.JobType.EveryNode]).
	JobsOnEveryNode() iter.Seq[*cluster.Job]
	// Alloc returns the allocation, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	// UnconcludedAllocs yields the job's allocations that are not
	// [cluster.Allocation.Concluded]. It may yield others too: they change no plan.
	UnconcludedAllocs(cluster.JobKey) iter.Seq[*cluster.Allocation]
	// LiveAllocsByNode yields the node's allocations that are not
	// client-terminal. The node need not exist.
	LiveAllocsByNode(cluster.NodeID) iter.Seq[*cluster.Allocation]
	// OccupiedNodes yields the ids of the nodes that have such allocations. The
	// nodes need not exist.
	OccupiedNodes() iter.Seq[cluster.NodeID]
	// Eval returns the evaluation, or nil.
	Eval(cluster.EvalID) *cluster.Evaluation
	// OpenEvals yields the job's evaluations that are pending or blocked, older
	// ones first.
	OpenEvals(cluster.JobKey) iter.Seq[*cluster.Evaluation]
	// PendingEvals yields the pending evaluations: higher priority first, then
	// older ones first. BlockedEvals does the same for the blocked ones.
	PendingEvals() iter.Seq[*cluster.Evaluation]
	BlockedEvals() iter.Seq[*cluster.Evaluation]
	// Usage sums up the resources of the node's allocations that are not client-terminal.
	// The node need not exist.
	Usage(cluster.NodeID) cluster.Usage
	volumes.View
	// CapacityIndex is the raft index of the last entry that may have added capacity.
	CapacityIndex() uint64
}
