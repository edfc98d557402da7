package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Epoch is the virtual time at which a world starts.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Options configure a [World]. The zero value of each is its default.
type Options struct {
	// Seed is the source of all random numbers. With zero, each duration is the minimum of
	// its range, and events of one time run in the order in which they were queued. The world
	// still draws the node that is lost, the writes in flight that survive, how far a new
	// leader is behind, and probabilities.
	Seed uint64
	// From is the store whose newest state the world begins with; nil is an empty state. The world does not
	// change the store. Begin is then the time at which the world starts, not before the times in the state.
	// Zero is [Epoch].
	From  *statestore.Store
	Begin time.Time
	// Servers is the number of servers. Zero is one. A single server succeeds itself in an
	// election.
	Servers int
	// Views: the servers are views of one store. Otherwise each applies the log to
	// its own store. Views need less time and memory. Use replicas to compare the states of
	// servers.
	Views bool
	// Commit is the time from the proposal of a write to its apply.
	Commit scenario.Range
	// Establish is the time from an election to the first step of the leader's drainer.
	Establish scenario.Range
	// Wake is the time from a wake-up to the drainer's step. Schedule is the time from a
	// wake-up to the scheduler's step.
	Wake, Schedule scenario.Range
	// Gather makes clients send their reports only at multiples of this duration, so that
	// fewer entries hold more reports each. With zero, clients send each report when it is
	// due.
	Gather time.Duration
	// Collect is the age at which the leader deletes ended rows, and the time between two
	// searches for them. Zero deletes nothing.
	Collect time.Duration
	// Drainer configures the drainer of each term. The world sets Raft and NewEvalID.
	Drainer drainer.NodeDrainerConfig
	// Reader returns a drainer's reader of a store; nil is the store's own reader.
	Reader func(*statestore.Store) drainer.StateReader
	// Client is the behaviour of an allocation on its node; nil is [setting.Default].
	Client func(*cluster.Allocation) Behaviour
	// RealClients makes each node run the real client over scripted drivers.
	RealClients bool
	// Containers returns whether the driver of a node with a real client keeps tasks in containers: see
	// [machine.Options]. Nil is no.
	Containers func(cluster.NodeID) bool
	// Storage is for real clients that mount volumes; nil: they mount none.
	Storage *Storage
	// Writes returns how many MiB the tasks of an allocation write to its ephemeral disk, with real clients; nil
	// is one.
	Writes func(*cluster.Allocation) int64
	// Retention is how long real clients keep data for a replacement. Zero is the client's default.
	Retention time.Duration
	// NodeObserver returns the observer of a machine with a real client; nil is none.
	NodeObserver func(cluster.NodeID) machine.Observer
	// Late is the delay of a late write, unless the fault has a delay. Zero is
	// [scenario.DefaultLate].
	Late scenario.Range
	// MaxSteps is the largest number of steps of a run. Zero is [DefaultMaxSteps].
	MaxSteps int
}

// DefaultMaxSteps is the default of [Options].MaxSteps.
const DefaultMaxSteps = 100_000

func (o Options) withDefaults() Options {
	if o.Servers == 0 {
		o.Servers = 1
	}
	if o.Begin.IsZero() {
		o.Begin = Epoch
	}
	if o.Reader == nil {
		o.Reader = (*statestore.Store).Reader
	}
	if o.Client == nil {
		o.Client = func(*cluster.Allocation) Behaviour { return setting.Default() }
	}
	if o.Late == (scenario.Range{}) {
		o.Late = scenario.Range{Min: scenario.DefaultLate, Max: scenario.DefaultLate}
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	return o
}
