package shims

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options bound a [Proposer]. The zero value of each is its default.
type Options struct {
	// Logger is told of entries larger than raft suggests; nil logs nothing.
	Logger hclog.Logger
	// OnAnswer is called with each message that was queued, nil for a barrier, and with
	// what became of it, before its reply; or nil. It is called as replies are: from
	// any goroutine, with no lock held, and it must not block.
	OnAnswer func(Message, Answer)
	// QueueSize is how many writes may wait to be proposed. A write beyond it is
	// refused at once. Zero is [DefaultQueueSize].
	QueueSize int
	// MaxInFlight is how many proposed entries may be without an answer of
	// raft's. Too few cost throughput: raft commits in groups. Zero is
	// [DefaultMaxInFlight].
	MaxInFlight int
	// EnqueueTimeout is how long raft may take to accept one entry, and so how
	// long [Proposer.Close] may take. Zero is [DefaultEnqueueTimeout].
	EnqueueTimeout time.Duration
	// Timeout is how long a write may take from being queued to being answered.
	// Too short makes slow writes unknown ones, each of which costs its proposer
	// a barrier. Zero is [DefaultTimeout].
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

// validate names the first field that cannot work, or returns nil.
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
