package scenario

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Scenario is one simulation, whole: what a world begins with, what happens in it
// and when, and, of one that is kept, what is to come of it.
type Scenario struct {
	// Name is the file's name without its ending, or empty.
	Name string
	// Prose says why the scenario exists: the comment that the file begins with,
	// without the marks.
	Prose []string

	// Seed is what everything is drawn from that a range or a probability leaves
	// open, and the order of what happens at one time. Zero is the fixed order.
	Seed    uint64
	Cluster Cluster
	Drainer Drainer
	Nodes   []Node
	Jobs    []Job
	Allocs  []Alloc
	Clients []Client
	// Events are in the order of the file, which is the order of those that happen
	// at one time.
	Events []Event
	Run    Run

	// Story and End are what is expected: the transcript and the final facts. Both
	// are empty in a scenario that expects nothing but that no guarantee is broken.
	Story, End string
}

// Range is a time to be drawn, from Min to Max. Equal ends are a time that is
// known. Ends may be [simclient.Never], which is written "never".
type Range struct{ Min, Max time.Duration }

// Cluster is the servers and what lies between them. The zero value of each range
// is no time at all.
type Cluster struct {
	// Servers is how many there are. Zero is one, which succeeds itself.
	Servers int
	// Replicas has each server apply the log to a store of its own. Otherwise
	// servers are views of one store.
	Replicas bool
	// Commit is how long a write takes from proposal to apply, Late how long one
	// takes that a fault makes late; zero is [DefaultLate].
	Commit Range
	Late   Range
	// Establish is from an election to the first step of the leader's drainer.
	Establish Range
	// Wake is from a wake-up to the step it asks for.
	Wake Range
	// Schedule is the same of the scheduler.
	Schedule Range
}

// Drainer is the drainer's configuration. Zero values are its own defaults.
type Drainer struct {
	MaxIDs           int
	MaxBytes         int
	InFlight         int
	QueriesPerSecond float64
	MinInterval      time.Duration
	Coalesce         time.Duration
	RetryBase        time.Duration
	RetryMax         time.Duration
	HealthGrace      time.Duration
	StopMargin       time.Duration
	// BelowBudget is "hold" or "proceed", Plugins "after-wait" or "after-stop",
	// Completion "stopped", "replaced", "migrated" or "asked"; empty is the first.
	BelowBudget string
	Plugins     string
	Completion  string
}

// Node is one node, or several alike.
type Node struct {
	// IDs are never empty; written as "n1" or "n1..n6".
	IDs []cluster.NodeID
	// What it has. Zero is plenty.
	CPU, MemoryMB, DiskMB, GPUMilli int64
	Class                           string
	// Status is what it begins with; empty is ready.
	Status     cluster.NodeStatus
	Ineligible bool
}

// Job is a job as it is registered.
type Job struct {
	Key      cluster.JobKey
	Type     cluster.JobType // empty is service
	Priority int             // zero is the default
	Stop     bool
	// Unregistered is written "absent": allocations of the job exist and the job
	// itself does not, as after a purge.
	Unregistered bool
	Groups       []Group // never empty
}

// Group is one task group. Zero values are the product's own defaults.
type Group struct {
	Name  string
	Count int
	// MaxParallel is the limit of the migrate block, or nil for the default.
	MaxParallel     *int
	MinHealthy      time.Duration
	HealthyDeadline time.Duration
	Kill, Shutdown  time.Duration // kill timeout and shutdown delay
	CPU, MemoryMB   int64
	GPUMilli        int64
	// Plugin makes it a storage plugin. Sticky and Migrate are of its disk.
	Plugin, Sticky, Migrate bool
	LostAfter               time.Duration
	Classes                 []string // node classes it may run on; nil is any
}

// Alloc is allocations that a world begins with, of one group, one after the
// other on the nodes named, again from the first when there are more.
type Alloc struct {
	Group       cluster.GroupKey
	First, Last int // indexes; -1 and -1 for as many as the nodes named
	On          []cluster.NodeID
	// Health is "good", "bad" or "none"; empty is good for service and system.
	Health string
	Canary bool
	// Age is how long ago it was placed. Zero is an hour.
	Age time.Duration
	// Client and Desired are its statuses; empty is running and run.
	Client  cluster.ClientStatus
	Desired cluster.DesiredStatus
	// Marked says that somebody else, no drain, has asked it to leave.
	Marked bool
	// Replaces is the index of the allocation it has replaced, or -1.
	Replaces int
}

// Client is how allocations fare on their nodes. All that match apply, in the
// order of the file; what a later one names goes before. Nil is not named.
type Client struct {
	Match     Selector
	Start     *Range
	Copy      *Range
	Verdict   *Range
	Run       *Range
	Stop      *Range
	Unhealthy *float64 // probability that the verdict is bad
}

// Selector matches allocations. Zero values match all: written "*", "web",
// "web.api", "web[0]", "@n1", "web@n1" or "web[0]@n1".
type Selector struct {
	Job   cluster.JobKey
	Group string
	Index int // -1 is any
	Node  cluster.NodeID
}

// Event is something that happens.
type Event struct {
	// Line is where the event stands in its file, or zero.
	Line int
	// At is when, from the beginning.
	At time.Duration
	// Before is the entry just before which it happens, between plan and apply, or
	// nil: written "at 5s before marks". It is the first such entry from At on.
	Before EntryKind // empty is none
	Op     Op        // never nil
}

// EntryKind is a kind of raft entry.
type EntryKind string

// The kinds of entries that an event may come before.
const (
	Marks       EntryKind = "marks"
	Completions EntryKind = "completion"
	Plan        EntryKind = "plan"
	Report      EntryKind = "report"
)

// Op is what is done. The set is closed; each type is a verb of the language.
type Op interface{ op() }

// The operations of operators.
type (
	// Drain drains a node or changes its drain's strategy.
	Drain struct {
		Node cluster.NodeID
		// Deadline is as in [cluster.DrainSpec]: zero none, negative force.
		Deadline     time.Duration
		IgnoreSystem bool
		Key          string
		// Twice has the request sent again although it worked.
		Twice bool
	}
	// Cancel ends a drain.
	Cancel struct {
		Node     cluster.NodeID
		Eligible bool
		Key      string
	}
	// Register registers a job, anew or as another version: the whole of it.
	Register struct{ Job Job }
	// Edit changes groups of a job. Nil is left as it is; Group empty is all.
	Edit struct {
		Job         cluster.JobKey
		Group       string
		Count       *int
		MaxParallel *int
		// Remove removes the group, Rename gives it another name.
		Remove bool
		Rename string
	}
	// Stop stops a job; Purge also forgets it.
	Stop struct {
		Job   cluster.JobKey
		Purge bool
	}
	// StopAlloc has the servers stop one allocation: written "stop web[0]".
	StopAlloc struct {
		Group cluster.GroupKey
		Index int
	}
	// Fail has an allocation end by itself.
	Fail struct {
		Group cluster.GroupKey
		Index int
		Node  cluster.NodeID // or empty
	}
	// Place has a live allocation of a group land on a node, past the scheduler.
	Place struct{ Alloc Alloc }
	// NodeChange is what becomes of nodes: Change is "down", "disconnected", "ready",
	// "register", "delete", "eligible" or "ineligible".
	NodeChange struct {
		Nodes  []cluster.NodeID
		Change string
	}
	// AddNode registers a node that was not there.
	AddNode struct{ Node Node }
)

// The operations on servers and on what lies between them.
type (
	// Elect ends the leader's term.
	Elect struct {
		// Server is who leads next, from 1; zero is the next one.
		Server int
		// Lost says that what the old leader had in flight is lost; otherwise it
		// survives.
		Lost bool
		// Believes is how long the old leader goes on believing that it leads.
		Believes time.Duration
	}
	// Pause stops a server's process for a while.
	Pause struct {
		Server int // from 1; zero is the leader
		For    time.Duration
	}
	// Clock sets a server's clock: how far it is ahead, negative for behind.
	Clock struct {
		Server int // from 1; zero is the leader
		Ahead  time.Duration
	}
	// Restore has the leader restore a snapshot of its state.
	Restore struct{}
	// Forget has the drainer lose all it remembers: its term begins anew.
	Forget struct{}
	// Fault arms a fault.
	Fault struct {
		Name FaultName
		// On is who is hit: "drainer", "scheduler", "clients", "operator" of writes; a
		// node, group or allocation of clients; empty is the fault's default.
		On string
		// Probability that an opportunity is taken. Zero is 1.
		Probability float64
		// Count is how many times at most. Zero is once if there is no window, and
		// without bound otherwise.
		Count int
		// For is how long it stays armed. Zero is until Count is used up.
		For time.Duration
		// Delay is how late, how long or how far, as the fault has it.
		Delay Range
	}
)

func (*Drain) op()      {}
func (*Cancel) op()     {}
func (*Register) op()   {}
func (*Edit) op()       {}
func (*Stop) op()       {}
func (*StopAlloc) op()  {}
func (*Fail) op()       {}
func (*Place) op()      {}
func (*NodeChange) op() {}
func (*AddNode) op()    {}
func (*Elect) op()      {}
func (*Pause) op()      {}
func (*Clock) op()      {}
func (*Restore) op()    {}
func (*Forget) op()     {}
func (*Fault) op()      {}

// FaultName names a fault.
type FaultName string

// The faults. Each says what an opportunity is.
const (
	// Of each write, when it is proposed.
	ApplyReject           FaultName = "apply/reject"            // surely not applied, and said so
	ApplyFull             FaultName = "apply/full"              // not taken
	ApplyAmbiguousApplied FaultName = "apply/ambiguous-applied" // applied, and said to be unknown
	ApplyAmbiguousLate    FaultName = "apply/ambiguous-late"    // said to be unknown, and applied later
	ApplyAmbiguousLost    FaultName = "apply/ambiguous-lost"    // said to be unknown, and never applied
	ApplySlow             FaultName = "apply/slow"              // applied late, and those behind it too
	// Of each entry of marks, just before it is applied: another write makes some of
	// them untrue.
	ApplyPartialRefuse FaultName = "apply/partial-refuse"
	// Of each write of the drainer, once proposed: the term ends before its answer.
	LeaderLoseMidBatch FaultName = "leader/lose-mid-batch"
	// Of each beginning of a term while it is armed: the term ends after Delay.
	LeaderFlap FaultName = "leader/flap"
	// Of each election: the old leader goes on believing for Delay.
	LeaderTwo FaultName = "leader/two"
	// Of each step of the drainer: its server stops for Delay just after it, before
	// what it wrote has left.
	LeaderPaused FaultName = "leader/paused"
	// Of each wake-up of the drainer.
	WatchDelay    FaultName = "watch/delay"    // it comes Delay later
	WatchCoalesce FaultName = "watch/coalesce" // it comes with the next, or Delay later
	WatchSpurious FaultName = "watch/spurious" // another comes Delay later, for nothing
	// Of each look at the state: it is that of some entries ago, until Delay later.
	ViewStale FaultName = "view/stale"
	// Of each allocation, when its client first sees it.
	ClientSlowStop  FaultName = "client/slow-stop"  // it takes all of its stop time
	ClientNeverStop FaultName = "client/never-stop" // it never stops
	ClientFailNew   FaultName = "client/fail-new"   // it is judged unhealthy
	ClientMute      FaultName = "client/mute"       // it is never judged
	// Of each step of the scheduler.
	SchedSlow FaultName = "sched/slow" // it comes Delay later
	// Of each evaluation of a drain, when applied: it is set to failed.
	SchedFailEval FaultName = "sched/fail-eval"
	// While armed nothing can be placed: all nodes are ineligible for Delay.
	SchedUnplaceable FaultName = "sched/unplaceable"
	// While armed, of On or a node drawn: its client dies, is out of touch, and
	// returns after Delay.
	NodeCrash      FaultName = "node/crash"
	NodeDisconnect FaultName = "node/disconnect"
)

// Run is how long a scenario lasts.
type Run struct {
	// Calm is when all faults end, for the drains to end within their bounds. Zero is
	// that none is ended.
	Calm time.Duration
	// For is when the scenario ends. Zero is when nothing is left to be done.
	For time.Duration
}

// DefaultLate is how late a write is that a fault makes late.
const DefaultLate = 3 * time.Second
