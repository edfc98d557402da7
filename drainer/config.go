package drainer

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
	"github.com/seed-f9cf0b39/nodedrain/drainer/knob"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// NodeDrainerConfig configures a [NodeDrainer]. Only Raft is required.
//
// A new knob belongs here if it changes when or how this leader plans and writes. A knob that changes
// what may be written, so that the FSM must use the same value, belongs to [rules.Policy].
type NodeDrainerConfig struct {
	// Logger receives messages for operators. Nil discards them.
	Logger *slog.Logger
	// Raft begins the drainer's writes. Never nil.
	Raft RaftApplier

	// NodeWatcher, JobWatcher and DeadlineNotifier build the components of a
	// term. Nil is [NewNodeWatcher], [NewJobWatcher] and [NewDeadlineHeap].
	NodeWatcher      DrainingNodeWatcherFactory
	JobWatcher       DrainingJobWatcherFactory
	DeadlineNotifier DrainDeadlineNotifierFactory

	// OnStep is called after each step, by the drainer's goroutine, with the duration of the step;
	// or nil. It must not call the [NodeDrainer]: SetEnabled waits for that goroutine.
	OnStep func(took time.Duration)
	// NewEvalID returns the id of an evaluation. It is called during a step and must not call the
	// [NodeDrainer]. Nil returns random UUIDs.
	NewEvalID func() cluster.EvalID

	// Policy is used by all decisions. Its zero values are its defaults.
	Policy rules.Policy

	// StateQueriesPerSecond bounds how often the drainer reads the state. It allows a burst of a
	// tenth of that number, and at least one. When changes come faster, one read covers several of
	// them. A low value delays each read by up to its inverse. With storage plugins a decision may
	// take two reads. Zero is [DefaultStateQueriesPerSecond].
	StateQueriesPerSecond float64
	// MaxIDsPerEntry bounds the marks and evaluations, or the completions, in one raft entry. Above
	// about 2,000 rows a go-memdb transaction costs several times more per row. Zero is
	// [DefaultMaxIDsPerEntry]. One mark and its evaluation must fit.
	MaxIDsPerEntry int
	// MaxBytesPerEntry bounds an entry's size, estimated from the ids in it.
	// Large entries delay raft's heartbeats. Zero is [DefaultMaxBytesPerEntry].
	MaxBytesPerEntry int
	// MaxInFlight bounds the entries without an answer. Zero is [DefaultMaxInFlight].
	MaxInFlight int
	// MinWriteInterval is the least time between rounds of writes, including rounds for which the
	// applier had no room. Zero, the default, writes as soon as no write is in flight. Items that
	// become due while one is in flight are written together.
	MinWriteInterval time.Duration
	// DeadlineCoalesce is how late a deadline may be to share a batch with later
	// ones. Zero is [DefaultDeadlineCoalesce]; negative is no coalescing.
	DeadlineCoalesce time.Duration
	// Retry spaces retries. Its zero values are its defaults.
	Retry Backoff
}

// Knobs declares the values of the configuration that are numbers, times and choices. Validation,
// the flags of "nodedrain server", the words of scenarios and the manual follow from this list.
func (c *NodeDrainerConfig) Knobs() knob.List {
	knobs := knob.List{
		{
			Name: "max-ids", Field: "MaxIDsPerEntry", Value: knob.Int(&c.MaxIDsPerEntry, minIDsPerEntry, DefaultMaxIDsPerEntry), Operator: true,
			Text: "Most marks and evaluations, or completions, in one raft entry. A mark and its evaluation are in one entry.",
		},
		{
			Name: "max-bytes", Field: "MaxBytesPerEntry", Value: knob.Int(&c.MaxBytesPerEntry, minBytesPerEntry, DefaultMaxBytesPerEntry),
			Text: "Largest size of a raft entry, in bytes, estimated from the ids in it.",
		},
		{
			Name: "in-flight", Field: "MaxInFlight", Value: knob.Int(&c.MaxInFlight, 1, DefaultMaxInFlight),
			Text: "Most raft entries without an answer.",
		},
		{
			Name: "queries", Field: "StateQueriesPerSecond", Value: knob.Rate(&c.StateQueriesPerSecond, DefaultStateQueriesPerSecond), Operator: true,
			Text: "Most reads of the state in one second.",
		},
		{
			Name: "min-interval", Field: "MinWriteInterval", Value: knob.Duration(&c.MinWriteInterval, 0), Operator: true,
			Text: "Least time between rounds of writes.",
		},
		{
			Name: "coalesce", Field: "DeadlineCoalesce", Value: knob.DurationOrNone(&c.DeadlineCoalesce, DefaultDeadlineCoalesce), Operator: true,
			Text: "How late a deadline may be to share a raft entry with later deadlines.",
		},
		{
			Name: "retry", Field: "Retry.Base", Value: knob.Duration(&c.Retry.Base, DefaultRetryBase),
			Text: "Wait before the first retry of a write. Each further wait is twice as long.",
		},
		{
			Name: "retry-max", Field: "Retry.Max", Value: knob.Duration(&c.Retry.Max, DefaultRetryMax),
			Text: "Longest wait before a retry of a write.",
		},
	}
	return append(knobs, c.Policy.Knobs()...)
}

// queryBurst is how many reads of the state the limiter allows without a wait.
func (c NodeDrainerConfig) queryBurst() int { return max(1, int(c.StateQueriesPerSecond/10)) }

// readInterval is the longest wait between two reads of the state, at most an hour.
func (c NodeDrainerConfig) readInterval() time.Duration {
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
		c.Logger = slog.New(slog.DiscardHandler)
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
	if c.Retry.Max == 0 {
		c.Retry.Max = max(DefaultRetryMax, c.Retry.Base)
	}
	c.Knobs().SetDefaults()
	return c
}

// validate names the first field that cannot work, or returns nil. Call it after withDefaults.
func (c NodeDrainerConfig) validate() error {
	if isNil(c.Raft) {
		return errors.New("NodeDrainerConfig.Raft is required: it is nil, or a nil pointer")
	}
	if err := c.Knobs().Validate(); err != nil {
		return fmt.Errorf("NodeDrainerConfig.%w", err)
	}
	if c.Retry.Max < c.Retry.Base {
		return fmt.Errorf("NodeDrainerConfig.Retry.Max must be >= Retry.Base (%s)", c.Retry.Base)
	}
	return nil
}

// isNil reports whether v is nil or holds a nil pointer, which would panic at its first use.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	switch value.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice, reflect.Chan:
		return value.IsNil()
	}
	return false
}

// earliest returns the earlier of two times, where zero means none.
func earliest(a, b time.Time) time.Time { return alarm.Earliest(a, b) }
