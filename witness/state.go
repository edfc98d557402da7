package witness

import (
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State is one consistent state of the cluster as the witness reads it. The
// order in which allocations come does not matter to it.
type State interface {
	// Node returns the node, or nil.
	Node(cluster.NodeID) *cluster.Node
	// Job returns the current version of the job, or nil.
	Job(cluster.JobKey) *cluster.Job
	// Alloc returns the allocation, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	// AllocsByJob yields every allocation of the job, terminal ones too.
	AllocsByJob(cluster.JobKey) iter.Seq[*cluster.Allocation]
	// AllocsByNode yields every allocation of the node, terminal ones too.
	AllocsByNode(cluster.NodeID) iter.Seq[*cluster.Allocation]
	// EvalsByJob yields every evaluation of the job, closed ones too.
	EvalsByJob(cluster.JobKey) iter.Seq[*cluster.Evaluation]
	// DrainRecord returns the record of an ended drain, or nil.
	DrainRecord(cluster.DrainID) *cluster.Drain
}

// World is a [State] that can be walked from end to end.
type World interface {
	State
	// Nodes yields every node.
	Nodes() iter.Seq[*cluster.Node]
	// Allocs yields every allocation.
	Allocs() iter.Seq[*cluster.Allocation]
	// Drains yields the records of ended drains.
	Drains() iter.Seq[*cluster.Drain]
}

// Entry is one applied raft entry.
type Entry struct {
	Index uint64
	// At is the proposer's time, or zero if the entry carries none. It is only
	// shown: what is judged by time is judged by the times in the state.
	At time.Time
	// Before is the state without the entry, After the state with it.
	Before, After State
	Touched       Touched
	// Planned are the items of an entry that a drainer planned, or nil: then what
	// follows from plans is not judged.
	Planned []Planned
}

// Planned is one item of an entry that a drainer planned: a mark, or the end of a
// drain if it names no allocation.
type Planned struct {
	Alloc cluster.AllocID
	Node  cluster.NodeID
	// Revision is that of the drain's strategy when it was planned.
	Revision cluster.Revision
}

// Touched names what an entry may have written: everything it did write, and
// whatever else is simpler to name than to leave out. Repeats are harmless.
type Touched struct {
	Nodes  []cluster.NodeID
	Jobs   []cluster.JobKey
	Allocs []cluster.AllocID
}

// Options are what the witness has to be told to judge by.
type Options struct {
	// StopMargin is how long past its stop time an allocation has to be waited
	// for after the deadline: the drainer's policy, in its own words. Zero asks
	// for no wait beyond the stop time.
	StopMargin time.Duration
	// PluginsAfterStop says that storage plugins are to wait after the deadline,
	// too, until nothing before them is left that is in touch.
	PluginsAfterStop bool
	// AskedIsComplete says that a drain promises no more than to have marked
	// everything: what is marked counts as left.
	AskedIsComplete bool
	// MarksOnly counts a group only when it is marked, not whenever it may have changed.
	// As much is found as ever, at a fraction of the cost, but reports hold no
	// [GroupReport].Lowest.
	MarksOnly bool
	// OnFinding is called with each finding when it is made, kept or not; or nil.
	OnFinding func(Finding)
	// MaxFindings is how many findings are kept; the rest is counted. Zero is
	// [DefaultMaxFindings].
	MaxFindings int
}

// DefaultMaxFindings is the default of [Options].MaxFindings.
const DefaultMaxFindings = 100
