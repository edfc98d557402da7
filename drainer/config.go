package drainer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// NodeDrainerConfig configures a [NodeDrainer]. Only Raft is required.
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
	// NewEvalID makes the ids of evaluations. It is called during a step and must not call the
	// [NodeDrainer]. Nil makes random UUIDs.
	NewEvalID func() cluster.EvalID

	// Policy is used by all decisions. Its zero values are its defaults.
	Policy rules.Policy

	// StateQueriesPerSecond bounds how often the drainer looks at the state. It allows a burst of a
	// tenth of that number, and at least one. When changes come faster, one look covers several of
	// them. A low value delays each look by up to its inverse. With storage plugins a decision may
	// take two looks. Zero is [DefaultStateQueriesPerSecond].
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

// queryBurst is how many looks at the state the limiter allows without a wait.
func (c NodeDrainerConfig) queryBurst() int { return max(1, int(c.StateQueriesPerSecond/10)) }

// lookInterval is the longest wait between two looks at the state, at most an hour.
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
	c.Policy = c.Policy.WithDefaults()
	c.StateQueriesPerSecond = cmp.Or(c.StateQueriesPerSecond, DefaultStateQueriesPerSecond)
	c.MaxIDsPerEntry = cmp.Or(c.MaxIDsPerEntry, DefaultMaxIDsPerEntry)
	c.MaxBytesPerEntry = cmp.Or(c.MaxBytesPerEntry, DefaultMaxBytesPerEntry)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, DefaultMaxInFlight)
	c.DeadlineCoalesce = cmp.Or(c.DeadlineCoalesce, DefaultDeadlineCoalesce)
	c.Retry.Base = cmp.Or(c.Retry.Base, DefaultRetryBase)
	c.Retry.Max = cmp.Or(c.Retry.Max, max(DefaultRetryMax, c.Retry.Base))
	return c
}

// validate names the first field that cannot work, or returns nil. Call it after withDefaults.
func (c NodeDrainerConfig) validate() error {
	if isNil(c.Raft) {
		return errors.New("NodeDrainerConfig.Raft is required: it is nil, or a nil pointer")
	}
	for _, field := range []struct {
		works      bool
		name, must string
	}{
		{c.StateQueriesPerSecond > 0, "StateQueriesPerSecond", "> 0"},
		{c.MaxIDsPerEntry >= minIDsPerEntry, "MaxIDsPerEntry", fmt.Sprintf(">= %d: a mark and its evaluation are in one entry", minIDsPerEntry)},
		{c.MaxBytesPerEntry >= minBytesPerEntry, "MaxBytesPerEntry", fmt.Sprintf(">= %d", minBytesPerEntry)},
		{c.MaxInFlight >= 1, "MaxInFlight", ">= 1"},
		{c.MinWriteInterval >= 0, "MinWriteInterval", ">= 0"},
		{c.Retry.Base >= 0, "Retry.Base", ">= 0"},
		{c.Retry.Max >= c.Retry.Base, "Retry.Max", fmt.Sprintf(">= Retry.Base (%s)", c.Retry.Base)},
	} {
		if !field.works {
			return fmt.Errorf("NodeDrainerConfig.%s must be %s", field.name, field.must)
		}
	}
	if err := c.Policy.Validate(); err != nil {
		return fmt.Errorf("NodeDrainerConfig.%w", err)
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
