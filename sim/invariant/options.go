package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Options are the facts that a [Judge] cannot observe: the configuration of the drainers, and the
// delays of the world.
type Options struct {
	// Policy is the policy that every entry of the drainers must carry.
	Policy rules.Policy

	// MaxIDs, MaxBytes and MaxInFlight bound the drainers' entries. Zero is
	// [DefaultMaxIDs], [DefaultMaxBytes] and [DefaultMaxInFlight].
	MaxIDs, MaxBytes, MaxInFlight int
	// QueriesPerSecond bounds the reads of the state. The burst is a tenth of that number, and
	// at least one. Zero is [DefaultQueriesPerSecond].
	QueriesPerSecond float64
	// MinInterval is the shortest time between rounds of writes.
	MinInterval time.Duration
	// Coalesce is how late a deadline may be. Zero is [DefaultCoalesce]. Negative is no delay.
	Coalesce time.Duration
	// RetryBase is the wait after the first failure, and RetryMax the longest wait. Zero is
	// [DefaultRetryBase] and [DefaultRetryMax]. RetryMax is at least RetryBase by default.
	RetryBase, RetryMax time.Duration

	// Bounds are the longest delays after the end of all faults.
	Bounds Bounds

	// Every is the number of entries between two audits. Zero is [DefaultEvery], negative audits
	// only at the end. Above one, large states are audited less often.
	Every int
	// Digests keeps the digests of entries, for [Judge.Replica].
	Digests bool
	// MaxViolations is how many violations are kept. Zero is [DefaultMaxViolations].
	MaxViolations int
}

// Bounds are the longest delays of the world after the end of all faults. Zero is no delay.
type Bounds struct {
	// Settle is how long the effects of faults last after their end: a late write, a paused
	// process, a clock that the drainer has not checked, the first step of a new leader.
	Settle time.Duration
	// Write is the time from a proposal to its answer, Wake from a wake-up to its step.
	Write, Wake time.Duration
}

// The defaults of [Options] repeat the drainer's documentation. They share no constants with it.
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
