package collect

import (
	"cmp"
	"fmt"
	"time"
)

// Options are when ended rows are deleted. The zero value means the defaults.
type Options struct {
	// Interval is the time between the beginnings of two rounds. Zero is [DefaultInterval].
	Interval time.Duration
	// AllocAge, EvalAge and JobAge are the time since the last write of a row after which it is
	// deleted. Zero is [DefaultAllocAge], [DefaultEvalAge] and [DefaultJobAge].
	AllocAge, EvalAge, JobAge time.Duration
	// MaxAllocs, MaxEvals and MaxJobs bound the ended rows that are kept: above the bound the
	// oldest are deleted whatever their age. Zero is [DefaultMaxRows].
	MaxAllocs, MaxEvals, MaxJobs int
	// MaxBatch bounds the rows of one request. A go-memdb transaction that touches more than
	// about 1,000 rows costs many times more for each row. Zero is [DefaultMaxBatch].
	MaxBatch int
	// Pause is the time between two requests of a round. Zero is [DefaultPause].
	Pause time.Duration
}

// Defaults of [Options].
const (
	DefaultInterval = time.Minute
	DefaultAllocAge = time.Hour
	DefaultEvalAge  = time.Hour
	DefaultJobAge   = 4 * time.Hour
	DefaultMaxRows  = 10_000
	DefaultMaxBatch = 250
	DefaultPause    = 20 * time.Millisecond
)

// withDefaults returns o with its zero values filled in.
func (o Options) withDefaults() Options {
	o.Interval = cmp.Or(o.Interval, DefaultInterval)
	o.AllocAge = cmp.Or(o.AllocAge, DefaultAllocAge)
	o.EvalAge = cmp.Or(o.EvalAge, DefaultEvalAge)
	o.JobAge = cmp.Or(o.JobAge, DefaultJobAge)
	o.MaxAllocs = cmp.Or(o.MaxAllocs, DefaultMaxRows)
	o.MaxEvals = cmp.Or(o.MaxEvals, DefaultMaxRows)
	o.MaxJobs = cmp.Or(o.MaxJobs, DefaultMaxRows)
	o.MaxBatch = cmp.Or(o.MaxBatch, DefaultMaxBatch)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	return o
}

// validate returns an error that names a field below zero.
func (o Options) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Interval", o.Interval}, {"AllocAge", o.AllocAge}, {"EvalAge", o.EvalAge}, {"JobAge", o.JobAge}, {"Pause", o.Pause},
	} {
		if d.value < 0 {
			return fmt.Errorf("collect: Options.%s is %s and must be >= 0", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"MaxAllocs", o.MaxAllocs}, {"MaxEvals", o.MaxEvals}, {"MaxJobs", o.MaxJobs}, {"MaxBatch", o.MaxBatch},
	} {
		if n.value < 0 {
			return fmt.Errorf("collect: Options.%s is %d and must be >= 0", n.name, n.value)
		}
	}
	return nil
}
