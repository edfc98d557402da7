package main

import (
	"errors"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// writer is the drainer's RaftApplier, and begins the other writes of the leader. Its goroutine
// makes one write after another.
type writer struct {
	// apply writes an entry to the log and applies it. It returns the entry's index and what was
	// refused of it. Without an entry it returns the index of the state. It may take any time.
	apply   func(*entry) (index uint64, refused []rules.Refusal, err error)
	queue   chan func()
	stopped chan struct{} // closed when the goroutine has ended
}

// writeLimit is how long a write may be without an answer.
const writeLimit = time.Second

func newWriter(apply func(*entry) (uint64, []rules.Refusal, error)) *writer {
	w := &writer{apply: apply, queue: make(chan func(), 16), stopped: make(chan struct{})}
	go w.run()
	return w
}

// propose queues an entry, or a barrier if it is nil, and returns at once. A write that failed, or
// whose time is over, may be in the log: its answer is Unknown and not Rejected.
func (w *writer) propose(e *entry, reply drainer.Reply) (queued bool) {
	var once sync.Once
	answer := func(a drainer.Answer) { once.Do(func() { reply(a) }) }
	write := func() {
		index, refused, err := w.apply(e)
		if err != nil {
			answer(drainer.Answer{Outcome: raftwrite.Unknown, Err: err})
			return
		}
		answer(drainer.Answer{Outcome: raftwrite.Applied, Index: index, Response: refused})
	}
	select {
	case w.queue <- write:
		slow := drainer.Answer{Outcome: raftwrite.Unknown, Err: errors.New("the log has not answered in time")}
		time.AfterFunc(writeLimit, func() { answer(slow) })
		return true
	default:
		return false
	}
}

// run writes until the queue is closed.
func (w *writer) run() {
	defer close(w.stopped)
	for write := range w.queue {
		write()
	}
}

// AllocUpdateDesiredTransition is for drainer.RaftApplier.
func (w *writer) AllocUpdateDesiredTransition(m *rules.Marks, reply drainer.Reply) (queued bool) {
	return w.propose(&entry{At: m.At, Marks: m}, reply)
}

// NodesDrainComplete is for drainer.RaftApplier.
func (w *writer) NodesDrainComplete(c *rules.Completions, reply drainer.Reply) (queued bool) {
	return w.propose(&entry{At: c.At, Completions: c}, reply)
}

// Barrier is for drainer.RaftApplier. This server alone writes, and applies what it writes, so the
// answer is the index of its state.
func (w *writer) Barrier(reply drainer.Reply) (queued bool) { return w.propose(nil, reply) }
