package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Epoch is when every world begins.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Options are what a [World] is made of. The zero value of each is its default.
type Options struct {
	// Seed is what everything is drawn from. With zero no time is drawn, every range
	// is at its least, and what happens at one time happens first come, first served;
	// only what has no least is drawn all the same: which node is lost, what of the
	// writes in flight, how far a new leader is behind, and what is but likely.
	Seed uint64
	// Servers is how many servers take turns at leading. Each has a state of its
	// own and falls behind while it does not lead. Zero is one, which succeeds
	// itself.
	Servers int
	// Views says that servers are views of one store. Otherwise each applies the log
	// to a store of its own.
	Views bool
	// Commit is how long a write takes from proposal to apply.
	Commit scenario.Range
	// Establish is from an election to the first step of the leader's drainer.
	Establish scenario.Range
	// Wake is from a wake-up to the drainer's step, Schedule to the scheduler's.
	Wake, Schedule scenario.Range
	// Gather is for how long clients gather what they have to say before they say it, at
	// whole multiples of it: fewer entries of more reports each. What they are told they
	// hear at once, and what they have to say by then they say with that. Zero is not at all.
	Gather time.Duration
	// Drainer configures the drainer of each term, but for Raft and NewEvalID,
	// which are the world's.
	Drainer drainer.NodeDrainerConfig
	// Reader is how the drainer reads a store; nil is the store's own reader.
	Reader func(*statestore.Store) drainer.StateReader
	// Client is how an allocation behaves on its node; nil is [DefaultBehaviour].
	Client func(*cluster.Allocation) Behaviour
	// Late is how late a write is that is, unless the fault that makes it late says how
	// late. Zero is [DefaultLate].
	Late scenario.Range
	// MaxSteps is how many steps a world may take in all: beyond it something
	// runs in circles. Zero is [DefaultMaxSteps].
	MaxSteps int
}

// Defaults of [Options].
const (
	DefaultLate     = scenario.DefaultLate
	DefaultMaxSteps = 100_000
)

func (o Options) withDefaults() Options {
	if o.Servers == 0 {
		o.Servers = 1
	}
	if o.Reader == nil {
		o.Reader = (*statestore.Store).Reader
	}
	if o.Client == nil {
		o.Client = DefaultBehaviour
	}
	if o.Late == (scenario.Range{}) {
		o.Late = scenario.Range{Min: DefaultLate, Max: DefaultLate}
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	return o
}
