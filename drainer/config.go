package drainer

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// NodeDrainerConfig is what a [NodeDrainer] is built from. Only Raft is required.
type NodeDrainerConfig struct {
	// Logger receives what an operator may want to know. Nil discards it.
	Logger hclog.Logger
	// Raft begins the drainer's writes. Never nil.
	Raft RaftApplier

	// NodeWatcher, JobWatcher and DeadlineNotifier build the components of a
	// term. Nil is [NewNodeWatcher], [NewJobWatcher] and [NewDeadlineHeap].
	NodeWatcher      DrainingNodeWatcherFactory
	JobWatcher       DrainingJobWatcherFactory
	DeadlineNotifier DrainDeadlineNotifierFactory

	// OnStep is called after each step, by the drainer's goroutine and with how long
	// the step took; or nil. It must not call the [NodeDrainer], which waits for that
	// goroutine when it is disabled.
	OnStep func(took time.Duration)
	// NewEvalID makes the ids of evaluations, in the midst of a step: it must not call
	// the drainer either. Nil makes random UUIDs.
	NewEvalID func() cluster.EvalID

	// Policy is what drains are decided by. Its zero values are its defaults.
	Policy Policy

	// StateQueriesPerSecond bounds how often the state is looked at, with a burst
	// of as many as a tenth of a second allows, and at least one: a cluster in which more
	// changes than that is looked at for several changes at once. Too low delays every
	// look by up to its inverse, and with storage plugins a decision may take two. Zero is
	// [DefaultStateQueriesPerSecond].
	StateQueriesPerSecond float64
	// MaxIDsPerEntry bounds the marks and evaluations, or the completions, in
	// one raft entry. Beyond some two thousand rows a go-memdb transaction costs
	// several times more per row. Zero is [DefaultMaxIDsPerEntry]; one mark and its
	// evaluation must fit.
	MaxIDsPerEntry int
	// MaxBytesPerEntry bounds an entry's size, estimated from the ids in it.
	// Large entries delay raft's heartbeats. Zero is [DefaultMaxBytesPerEntry].
	MaxBytesPerEntry int
	// MaxInFlight bounds the entries begun and not answered. Zero is
	// [DefaultMaxInFlight].
	MaxInFlight int
	// MinWriteInterval is the least time between rounds of writes. Zero, the
	// default, writes at once when no write is in flight: what becomes due
	// meanwhile is gathered and leaves together.
	MinWriteInterval time.Duration
	// DeadlineCoalesce is how late a deadline may be to share a batch with later
	// ones. Zero is [DefaultDeadlineCoalesce]; negative is no coalescing.
	DeadlineCoalesce time.Duration
	// RetryBase and RetryMax bound the wait before what failed is tried again; it
	// doubles with every failure in a row. Zero is [DefaultRetryBase] and
	// [DefaultRetryMax].
	RetryBase time.Duration
	RetryMax  time.Duration
}

// queryBurst is how many looks at the state may follow each other at once.
func (c NodeDrainerConfig) queryBurst() int { return max(1, int(c.StateQueriesPerSecond/10)) }

// lookInterval is how long a look at the state may have to wait for the one before, an
// hour at the most.
func (c NodeDrainerConfig) lookInterval() time.Duration {
	return time.Duration(min(float64(time.Second)/c.StateQueriesPerSecond, float64(time.Hour)))
}

// Defaults of [NodeDrainerConfig].
const (
	DefaultStateQueriesPerSecond = 500.0
	DefaultMaxIDsPerEntry        = 500
	DefaultMaxBytesPerEntry      = 512 << 10
	DefaultMaxInFlight           = 4
	DefaultDeadlineCoalesce      = 250 * time.Millisecond
	DefaultRetryBase             = 50 * time.Millisecond
	DefaultRetryMax              = 15 * time.Second
)

// minIDsPerEntry is a mark and its evaluation.
const minIDsPerEntry = 2

// withDefaults returns c with its zero values filled in.
func (c NodeDrainerConfig) withDefaults() NodeDrainerConfig {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.NodeWatcher == nil {
		c.NodeWatcher = NewNodeWatcher
	}
	if c.JobWatcher == nil {
		c.JobWatcher = NewJobWatcher
	}
	if c.DeadlineNotifier == nil {
		c.DeadlineNotifier = NewDeadlineHeap
	}
	if c.NewEvalID == nil {
		c.NewEvalID = func() cluster.EvalID { return cluster.EvalID(uuid.NewString()) }
	}
	c.Policy = c.Policy.withDefaults()
	setDefault(&c.StateQueriesPerSecond, DefaultStateQueriesPerSecond)
	setDefault(&c.MaxIDsPerEntry, DefaultMaxIDsPerEntry)
	setDefault(&c.MaxBytesPerEntry, DefaultMaxBytesPerEntry)
	setDefault(&c.MaxInFlight, DefaultMaxInFlight)
	setDefault(&c.DeadlineCoalesce, DefaultDeadlineCoalesce)
	setDefault(&c.RetryBase, DefaultRetryBase)
	setDefault(&c.RetryMax, max(DefaultRetryMax, c.RetryBase))
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate names the first field that cannot work, or returns nil. It is asked
// after withDefaults.
func (c NodeDrainerConfig) validate() error {
	if c.Raft == nil {
		return errors.New("NodeDrainerConfig.Raft is required")
	}
	switch {
	case !(c.StateQueriesPerSecond > 0):
		return fmt.Errorf("NodeDrainerConfig.StateQueriesPerSecond is %v and must be > 0", c.StateQueriesPerSecond)
	case c.MaxIDsPerEntry < minIDsPerEntry:
		return fmt.Errorf("NodeDrainerConfig.MaxIDsPerEntry is %d and must be >= %d: a mark travels with its evaluation", c.MaxIDsPerEntry, minIDsPerEntry)
	case c.MaxBytesPerEntry < minBytesPerEntry:
		return fmt.Errorf("NodeDrainerConfig.MaxBytesPerEntry is %d and must be >= %d", c.MaxBytesPerEntry, minBytesPerEntry)
	case c.MaxInFlight < 1:
		return fmt.Errorf("NodeDrainerConfig.MaxInFlight is %d and must be >= 1", c.MaxInFlight)
	case c.MinWriteInterval < 0:
		return fmt.Errorf("NodeDrainerConfig.MinWriteInterval is %s and must be >= 0", c.MinWriteInterval)
	case c.RetryBase < 0:
		return fmt.Errorf("NodeDrainerConfig.RetryBase is %s and must be >= 0", c.RetryBase)
	case c.RetryMax < c.RetryBase:
		return fmt.Errorf("NodeDrainerConfig.RetryMax is %s and must be >= RetryBase (%s)", c.RetryMax, c.RetryBase)
	}
	if err := c.Policy.validate(); err != nil {
		return fmt.Errorf("NodeDrainerConfig.%w", err)
	}
	return nil
}
