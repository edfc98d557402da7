package shims

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options configure a [Proposer]. Zero values are defaults.
type Options struct {
	// Logger logs entries larger than raft suggests; nil logs nothing.
	Logger hclog.Logger
	// OnAnswer is called before each reply with the message (nil for a barrier) and its
	// answer, or nil. Like replies it is called from any goroutine, with no lock held, and
	// must not block.
	OnAnswer func(Message, Answer)
	// QueueSize bounds the queued writes. The proposer refuses further writes. Zero is
	// [DefaultQueueSize].
	QueueSize int
	// MaxInFlight bounds the proposed entries that raft has not answered. A low value costs
	// throughput, because raft commits in groups. Zero is
	// [DefaultMaxInFlight].
	MaxInFlight int
	// EnqueueTimeout bounds the time in which raft accepts one entry, and so the time of
	// [Proposer.Close]. Zero is [DefaultEnqueueTimeout].
	EnqueueTimeout time.Duration
	// Timeout bounds the time from queueing a write to its answer. If it is too short, slow
	// writes end as Unknown, and each costs its caller a barrier. Zero is [DefaultTimeout].
	Timeout time.Duration
}

// Defaults of [Options].
const (
	DefaultQueueSize      = 256
	DefaultMaxInFlight    = 64
	DefaultEnqueueTimeout = 500 * time.Millisecond
	DefaultTimeout        = 10 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.QueueSize == 0 {
		o.QueueSize = DefaultQueueSize
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.EnqueueTimeout == 0 {
		o.EnqueueTimeout = DefaultEnqueueTimeout
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return o
}

// validate returns an error that names the first invalid field.
func (o Options) validate() error {
	switch {
	case o.QueueSize < 1:
		return fmt.Errorf("Options.QueueSize is %d and must be > 0", o.QueueSize)
	case o.MaxInFlight < 1:
		return fmt.Errorf("Options.MaxInFlight is %d and must be > 0", o.MaxInFlight)
	case o.EnqueueTimeout < 0:
		return fmt.Errorf("Options.EnqueueTimeout is %s and must be > 0", o.EnqueueTimeout)
	case o.Timeout < 0:
		return fmt.Errorf("Options.Timeout is %s and must be > 0", o.Timeout)
	}
	return nil
}
