package heartbeat

import (
	"fmt"
	"time"
)

// Options set the time between heartbeats. The zero value of each field is its default.
type Options struct {
	// MinTTL is the shortest TTL of a node. Zero is [DefaultMinTTL].
	MinTTL time.Duration
	// MaxRate is how many heartbeats a second there may be: with more nodes than
	// MinTTL times that, the TTL is longer. Zero is [DefaultMaxRate].
	MaxRate float64
	// Grace is how long beyond its TTL a node is waited for. Zero is
	// [DefaultGrace].
	Grace time.Duration
	// MaxWrites is how many changes of status are being written at a time. Zero is
	// [DefaultMaxWrites].
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

// Validate names the first field that cannot work, or returns nil.
func (o Options) Validate() error {
	switch {
	case o.MinTTL < 0:
		return fmt.Errorf("Options.MinTTL is %s and must be above 0", o.MinTTL)
	case o.MaxRate < 0:
		return fmt.Errorf("Options.MaxRate is %v and must be above 0", o.MaxRate)
	case o.Grace < 0:
		return fmt.Errorf("Options.Grace is %s and must be above 0", o.Grace)
	case o.MaxWrites < 0:
		return fmt.Errorf("Options.MaxWrites is %d and must be above 0", o.MaxWrites)
	case o.RetryAfter < 0:
		return fmt.Errorf("Options.RetryAfter is %s and must be above 0", o.RetryAfter)
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

// base is the least TTL with that many nodes.
func (o Options) base(nodes int) time.Duration {
	return max(o.MinTTL, time.Duration(float64(nodes)/o.MaxRate*float64(time.Second)))
}
