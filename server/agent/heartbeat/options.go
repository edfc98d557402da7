package heartbeat

import (
	"fmt"
	"time"
)

// Options set the time between heartbeats. The zero value of each field is its default.
type Options struct {
	// MinTTL is the shortest TTL of a node. Zero is [DefaultMinTTL].
	MinTTL time.Duration
	// MaxRate is the largest number of heartbeats a second of all nodes together. With more than
	// MinTTL times MaxRate nodes the TTL is longer than MinTTL. Zero is [DefaultMaxRate].
	MaxRate float64
	// Grace is the time after the end of its TTL for which a node is not marked down. Zero is
	// [DefaultGrace].
	Grace time.Duration
	// MaxWrites is the largest number of writes in flight. Zero is [DefaultMaxWrites].
	MaxWrites int
	// RetryAfter is the wait before a failed write is retried. Zero is [DefaultRetryAfter].
	RetryAfter time.Duration
}

// Defaults of [Options].
const (
	DefaultMinTTL     = 10 * time.Second
	DefaultMaxRate    = 50
	DefaultGrace      = 10 * time.Second
	DefaultMaxWrites  = 32
	DefaultRetryAfter = time.Second
)

// Validate returns an error that names the first invalid field, or nil.
func (o Options) Validate() error {
	switch {
	case o.MinTTL < 0:
		return fmt.Errorf("Options.MinTTL is %s and must not be negative", o.MinTTL)
	case o.MaxRate < 0:
		return fmt.Errorf("Options.MaxRate is %v and must not be negative", o.MaxRate)
	case o.Grace < 0:
		return fmt.Errorf("Options.Grace is %s and must not be negative", o.Grace)
	case o.MaxWrites < 0:
		return fmt.Errorf("Options.MaxWrites is %d and must not be negative", o.MaxWrites)
	case o.RetryAfter < 0:
		return fmt.Errorf("Options.RetryAfter is %s and must not be negative", o.RetryAfter)
	}
	return nil
}

func (o Options) withDefaults() Options {
	setDefault(&o.MinTTL, DefaultMinTTL)
	setDefault(&o.MaxRate, DefaultMaxRate)
	setDefault(&o.Grace, DefaultGrace)
	setDefault(&o.MaxWrites, DefaultMaxWrites)
	setDefault(&o.RetryAfter, DefaultRetryAfter)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// base returns the shortest TTL with that many nodes.
func (o Options) base(nodes int) time.Duration {
	return max(o.MinTTL, time.Duration(float64(nodes)/o.MaxRate*float64(time.Second)))
}
