package witness

import (
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State is one consistent state of the cluster. The order of allocations does not matter. That of a
// cluster with volumes also has the methods of Volumes in package opinion, and that of one with
// cluster versions the method of Versioned.
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

// World is a [State] that lists all its rows.
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
	// At is the proposer's time, or zero if the entry carries none. Marks and ends have this time.
	// For all else the witness judges by the times in the state.
	At time.Time
	// Before is the state before the entry, After the state after it.
	Before, After State
	Touched       Touched
	// Source is the origin of the entry. If it is unknown, the witness does not judge whether the
	// entry may start, change or end a drain, or mark an allocation.
	Source Source
	// Planned are the items of an entry that a drainer planned. If it is nil, the witness
	// does not judge plans.
	Planned []Planned
}

// Source is the origin of an entry.
type Source uint8

// The origins of entries.
const (
	UnknownSource Source = iota
	// Drainer: the entry marks allocations or ends drains.
	Drainer
	// Operator: the entry is a request that starts, updates, cancels or confirms a drain.
	Operator
	// Other: the entry does none of these. It may delete a node that drains.
	Other
	// Collection: the entry deletes ended work.
	Collection
)

// Planned is one item of an entry that a drainer planned: a mark, or the end of a
// drain if it names no allocation.
type Planned struct {
	Alloc cluster.AllocID
	Node  cluster.NodeID
	// Revision is that of the drain's strategy when it was planned.
	Revision cluster.Revision
	// Class is the class of a mark. Surge means that the mark only requests a replacement.
	Class cluster.MarkClass
	Surge bool
}

// Touched names the rows that an entry may have written: every row it wrote, and possibly
// more. Repeats are harmless.
type Touched struct {
	Nodes  []cluster.NodeID
	Jobs   []cluster.JobKey
	Allocs []cluster.AllocID
}

// Options configure the rules of the witness.
type Options struct {
	// StopMargin is how long past its stop time a drain must wait for an allocation after
	// the deadline, as the drainer's policy sets it. Zero means no wait beyond the stop
	// time.
	StopMargin time.Duration
	// PluginsAfterStop means that storage plugins wait, even after the deadline, until no
	// allocation of an earlier stage in touch is left.
	PluginsAfterStop bool
	// MarkedIsComplete means that a drain only has to mark all allocations: an allocation
	// that was requested to leave counts as gone.
	MarkedIsComplete bool
	// MarksOnly counts a group only after a mark in it, not after every possible change.
	// The findings are the same, at a fraction of the cost, but reports hold no
	// [GroupReport].Lowest.
	MarksOnly bool
	// OnFinding is called with each finding at once, kept or not. It may be nil.
	OnFinding func(Finding)
	// MaxFindings bounds the kept findings; the others are only counted. Zero is
	// [DefaultMaxFindings].
	MaxFindings int
}

// DefaultMaxFindings is the default of [Options].MaxFindings.
const DefaultMaxFindings = 100
