package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config configures a [Scheduler]. Snapshot and Applier are required.
type Config struct {
	// Logger receives messages for operators. Nil discards them.
	Logger hclog.Logger
	// Snapshot returns the newest view, and never blocks; never nil.
	Snapshot func() View
	// Applier begins the scheduler's writes; never nil.
	Applier Applier
	// IDs makes ids. Nil fields make random UUIDs.
	IDs IDs

	// MaxInFlight bounds the writes in flight: those that the state does not show yet.
	// Zero is [DefaultMaxInFlight].
	MaxInFlight int
	// MaxPlanParts bounds the stops and placements of one plan. The rest goes into the
	// job's next plan. A go-memdb transaction that touches more than about
	// 1,000 rows costs many times more per row. Zero is [DefaultMaxPlanParts]; a
	// stop and its replacement must fit.
	MaxPlanParts int
	// BlockedInterval is the minimum time between two attempts to place blocked
	// evaluations. Zero is [DefaultBlockedInterval].
	BlockedInterval time.Duration
	// RetryBase and RetryMax bound the wait before a retry. The wait doubles with every
	// failure in a row. Zero is [DefaultRetryBase] and
	// [DefaultRetryMax].
	RetryBase time.Duration
	RetryMax  time.Duration
}

// Defaults of [Config].
const (
	DefaultMaxInFlight     = 8
	DefaultMaxPlanParts    = 250
	DefaultBlockedInterval = 100 * time.Millisecond
	DefaultRetryBase       = 50 * time.Millisecond
	DefaultRetryMax        = 15 * time.Second
)

// minPlanParts is a stop and its replacement.
const minPlanParts = 2

// withDefaults returns c with its zero values filled in.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	random := RandomIDs()
	if c.IDs.Alloc == nil {
		c.IDs.Alloc = random.Alloc
	}
	if c.IDs.Eval == nil {
		c.IDs.Eval = random.Eval
	}
	setDefault(&c.MaxInFlight, DefaultMaxInFlight)
	setDefault(&c.MaxPlanParts, DefaultMaxPlanParts)
	setDefault(&c.BlockedInterval, DefaultBlockedInterval)
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

// validate returns an error that names the first invalid field. The caller has called
// withDefaults.
func (c Config) validate() error {
	switch {
	case c.Snapshot == nil:
		return errors.New("Config.Snapshot is required")
	case c.Applier == nil:
		return errors.New("Config.Applier is required")
	case c.MaxInFlight < 1:
		return fmt.Errorf("Config.MaxInFlight is %d and must be >= 1", c.MaxInFlight)
	case c.MaxPlanParts < minPlanParts:
		return fmt.Errorf("Config.MaxPlanParts is %d and must be >= %d: a stop travels with its replacement", c.MaxPlanParts, minPlanParts)
	case c.BlockedInterval < 0:
		return fmt.Errorf("Config.BlockedInterval is %s and must be >= 0", c.BlockedInterval)
	case c.RetryBase < 0:
		return fmt.Errorf("Config.RetryBase is %s and must be >= 0", c.RetryBase)
	case c.RetryMax < c.RetryBase:
		return fmt.Errorf("Config.RetryMax is %s and must be >= RetryBase (%s)", c.RetryMax, c.RetryBase)
	}
	return nil
}
