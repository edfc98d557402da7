package scenario

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
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
	// open, and the order of what happens at one time. Zero draws nothing: ranges
	// are at their least, and the order is fixed.
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
	// Neither ends with a newline.
	Story, End string
}

// Range is a time to be drawn, from Min to Max. Equal ends are a time that is
// known.
type Range struct{ Min, Max time.Duration }

// Never is a time that does not come: both ends of a [Range] of a client's.
const Never = simclient.Never

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
	// Gather is for how long clients gather what they have to say: what nothing else has
	// them say sooner is said at its whole multiples. Zero is not at all.
	Gather time.Duration
}

// DefaultLate is how late a write is that a fault makes late.
const DefaultLate = 3 * time.Second

// Drainer is the drainer's configuration. Zero values are its own defaults.
type Drainer struct {
	MaxIDs           int
	MaxBytes         int
	InFlight         int
	QueriesPerSecond float64
	MinInterval      time.Duration
	// Coalesce is how late a deadline may be to share a batch, or [NoCoalescing].
	Coalesce    time.Duration
	RetryBase   time.Duration
	RetryMax    time.Duration
	HealthGrace time.Duration
	StopMargin  time.Duration
	// BelowBudget is "hold" or "proceed", Plugins "after-wait" or "after-stop",
	// Completion "stopped", "replaced", "migrated" or "asked"; empty is the first.
	BelowBudget string
	Plugins     string
	Completion  string
}

// NoCoalescing is written "coalesce=none".
const NoCoalescing = -time.Second

// Run is how long a scenario lasts, and how it is told.
type Run struct {
	// Calm is when all faults end, for the drains to end within their bounds. Zero is
	// that none is ended, and drains have to as soon as no fault is on any more.
	Calm time.Duration
	// CutServers are servers, from 1, that stand still and never lead again once it is
	// calm, and CutNodes nodes whose clients are silent for good then: what stays broken
	// outside of the core that is enough for the drains. The servers are a minority. Both
	// are nil without Calm.
	CutServers []int
	CutNodes   []cluster.NodeID
	// For is when the scenario ends. Zero is when nothing is left to be done.
	For time.Duration
	// Drained has it end before that, a while after the last drain has ended, if nothing
	// that is left to happen begins another.
	Drained bool
	// Brief has the story count nodes and allocations rather than name them.
	Brief bool
}
