package simclient

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Options are what a [Fleet] is built from. Snapshot and Applier are required.
type Options struct {
	// Snapshot returns the newest state, and never blocks; never nil. The fleet ignores a
	// state that is older than the one before.
	Snapshot func() State
	// Applier takes the reports; never nil.
	Applier Applier

	// Seed is the seed of all draws.
	Seed uint64
	// Behave returns an allocation's behaviour; nil is [Options.Draw]. It is called once for
	// each allocation, with that allocation's own generator. It must not write to the
	// allocation.
	Behave func(*cluster.Allocation, *rand.Rand) Behaviour

	// MinStart and MaxStart bound how long an allocation takes to start, in Draw. Zero is [DefaultMinStart] and [DefaultMaxStart].
	MinStart time.Duration
	MaxStart time.Duration
	// CopyTime is how long the copy of a predecessor's data takes, in Draw. Zero is [DefaultCopyTime].
	CopyTime time.Duration
	// RunTime is how long an allocation of a batch or sysbatch job runs, in Draw. Zero is [DefaultRunTime].
	RunTime time.Duration
	// MinHealthyTime is that of a group without a migrate block. Zero is
	// [cluster.DefaultMinHealthyTime].
	MinHealthyTime time.Duration

	// Uncut lets an allocation take longer to stop than its stop time, for behaviours of observed times.
	Uncut bool
}

// Defaults of [Options].
const (
	DefaultMinStart = time.Second
	DefaultMaxStart = 3 * time.Second
	DefaultCopyTime = 2 * time.Second
	DefaultRunTime  = time.Hour
)

const (
	// maxBatch bounds the reports of one batch; the next batch has the others.
	maxBatch = 250
	// retryBase and retryMax bound the wait after a batch that was not applied. The wait
	// doubles with each consecutive failure, up to maxDoublings times.
	retryBase    = 50 * time.Millisecond
	retryMax     = 5 * time.Second
	maxDoublings = 10
)

// withDefaults returns o with its zero values filled in.
func (o Options) withDefaults() Options {
	if o.MaxStart == 0 {
		o.MaxStart = max(DefaultMaxStart, o.MinStart)
	}
	setDefault(&o.MinStart, min(DefaultMinStart, o.MaxStart))
	setDefault(&o.CopyTime, DefaultCopyTime)
	setDefault(&o.RunTime, DefaultRunTime)
	setDefault(&o.MinHealthyTime, cluster.DefaultMinHealthyTime)
	if o.Behave == nil {
		o.Behave = o.Draw
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate names the first field that cannot work, or returns nil. Call withDefaults first.
func (o Options) validate() error {
	switch {
	case o.Snapshot == nil:
		return errors.New("Options.Snapshot is required")
	case o.Applier == nil:
		return errors.New("Options.Applier is required")
	case o.MinStart < 0 || o.MaxStart < o.MinStart:
		return fmt.Errorf("MinStart is %s and MaxStart is %s: must be 0 <= MinStart <= MaxStart", o.MinStart, o.MaxStart)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"CopyTime", o.CopyTime}, {"RunTime", o.RunTime}, {"MinHealthyTime", o.MinHealthyTime}} {
		if d.value < 0 {
			return fmt.Errorf("%s is %s and must be > 0", d.name, d.value)
		}
	}
	return nil
}
