package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Options are the facts that a [Judge] cannot observe: what the drainer was
// configured to promise, and what lies between it and the state. The zero value
// of each is its default.
type Options struct {
	// Policy is the drainers' policy, which every entry of theirs has to carry.
	Policy rules.Policy

	// MaxIDs, MaxBytes and MaxInFlight bound the drainers' entries. Zero is
	// [DefaultMaxIDs], [DefaultMaxBytes] and [DefaultMaxInFlight].
	MaxIDs, MaxBytes, MaxInFlight int
	// QueriesPerSecond bounds the looks at the state, with a burst of as many as a tenth
	// of a second allows, and at least one. Zero is [DefaultQueriesPerSecond].
	QueriesPerSecond float64
	// MinInterval is the least time between rounds of writes. Zero is none.
	MinInterval time.Duration
	// Coalesce is how late a deadline may be. Zero is [DefaultCoalesce], negative
	// not at all.
	Coalesce time.Duration
	// RetryBase is how long a drainer waits after the first failure, and RetryMax how
	// long it waits at most. Zero is [DefaultRetryBase], and [DefaultRetryMax] or
	// RetryBase if that is longer.
	RetryBase, RetryMax time.Duration

	// Bounds are how long things take once faults have ended.
	Bounds Bounds

	// Every is after how many entries everything is counted. Zero is
	// [DefaultEvery], 1 after each; below zero only at the end. Of a large state it
	// is done less often, so that an entry never costs more than a few rows.
	Every int
	// Digests has the digest of every entry kept, for [Judge.Replica] to be compared
	// with.
	Digests bool
	// MaxViolations is how many violations are kept. Zero is [DefaultMaxViolations].
	MaxViolations int
}

// Bounds are how long at most what a drainer does not do itself takes, once
// faults have ended. Zero is no time at all.
type Bounds struct {
	// Settle is how long what faults have begun goes on after their end: a write
	// that is late, a process that is paused, a clock that the drainer has not read, a
	// new leader's first step.
	Settle time.Duration
	// Write is from a proposal to its answer, Wake from a wake-up to its step.
	Write, Wake time.Duration
}

// Defaults of [Options]. They are what the drainer's documentation says, written
// down again.
const (
	DefaultMaxIDs           = 500
	DefaultMaxBytes         = 512 * 1024
	DefaultMaxInFlight      = 4
	DefaultQueriesPerSecond = 500.0
	DefaultCoalesce         = 250 * time.Millisecond
	DefaultRetryBase        = 50 * time.Millisecond
	DefaultRetryMax         = 15 * time.Second
	DefaultHealthGrace      = 10 * time.Second
	DefaultStopMargin       = 15 * time.Second
	DefaultEvery            = 64
	DefaultMaxViolations    = 100
)

func (o Options) withDefaults() Options {
	setDefault(&o.Policy.HealthGrace, DefaultHealthGrace)
	setDefault(&o.Policy.StopMargin, DefaultStopMargin)
	setDefault(&o.MaxIDs, DefaultMaxIDs)
	setDefault(&o.MaxBytes, DefaultMaxBytes)
	setDefault(&o.MaxInFlight, DefaultMaxInFlight)
	setDefault(&o.QueriesPerSecond, DefaultQueriesPerSecond)
	setDefault(&o.Coalesce, DefaultCoalesce)
	setDefault(&o.RetryBase, DefaultRetryBase)
	setDefault(&o.RetryMax, max(DefaultRetryMax, o.RetryBase))
	setDefault(&o.Every, DefaultEvery)
	setDefault(&o.MaxViolations, DefaultMaxViolations)
	o.Coalesce = max(0, o.Coalesce)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
