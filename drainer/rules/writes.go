package rules

import (
	"cmp"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Mark is the decision that one allocation leaves its node.
type Mark struct {
	Alloc cluster.AllocID
	// Group is the allocation's group, Node its node.
	Group cluster.GroupKey
	Node  cluster.NodeID
	// Drain is the drain for which it leaves. Revision is the revision for which it was planned.
	Drain    cluster.DrainID
	Revision cluster.Revision
	Class    cluster.MarkClass
	// Surge means that the entry does not mark the allocation yet. It requests a replacement, which the scheduler
	// places beside the allocation. The class is [cluster.MarkPaced].
	Surge bool `codec:",omitempty"`
}

// Compare orders marks by namespace, job, group, allocation.
func (m Mark) Compare(o Mark) int {
	return cmp.Or(m.Group.Compare(o.Group), cmp.Compare(m.Alloc, o.Alloc))
}

// Marks is one raft entry of marks, with the evaluations of their jobs.
type Marks struct {
	// At is the proposer's time; the applier reads no other clock.
	At     time.Time
	Policy Policy
	// Marks are in (namespace, job, group, allocation) order.
	Marks []Mark
	// Reevaluate are groups, in order, with marked allocations that still run and no open
	// evaluation that would stop them.
	Reevaluate []cluster.GroupKey
	// Evals holds one evaluation for each job with a mark or a group to re-evaluate, in (namespace,
	// job) order. [Recheck] drops the evaluation of a job with no accepted mark and no group that
	// still needs it.
	Evals []*cluster.Evaluation
}

// Completion ends one drain.
type Completion struct {
	Node     cluster.NodeID
	Drain    cluster.DrainID
	Revision cluster.Revision
}

// Completions is one raft entry of completions.
type Completions struct {
	// At is the proposer's time; the applier reads no other clock.
	At     time.Time
	Policy Policy
	// Completions are in node order.
	Completions []Completion
}

// Refusal is why one item of an applied entry was refused.
type Refusal struct {
	// Alloc is the allocation of a refused mark, or empty.
	Alloc cluster.AllocID
	// Node is the node of the refused mark or completion.
	Node cluster.NodeID
	Why  string
}
