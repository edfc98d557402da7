package shims

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
)

// Raft is the part of [raft.Raft] that a [Proposer] uses.
type Raft interface {
	Apply(cmd []byte, timeout time.Duration) raft.ApplyFuture
	Barrier(timeout time.Duration) raft.Future
}

var _ Raft = (*raft.Raft)(nil)

// Proposer writes messages to raft's log and answers with their outcome. All methods are safe for
// concurrent use, and all except Close and Settle return without waiting. Entries are proposed in
// the order of the queue.
//
// A Proposer owns one goroutine, which alone calls raft, and one for each proposed entry that raft
// has not answered: at most MaxInFlight of these. If raft answers a future late or never, its
// goroutine still counts towards MaxInFlight, although the Proposer answers the write after
// Timeout.
type Proposer struct {
	raft Raft
	fsm  *FSM // never nil
	opts Options

	// wake has capacity 1. enqueue sends to it without blocking.
	wake chan struct{}
	// inFlight holds one value for each entry that raft has not answered.
	inFlight chan struct{}
	// closing is closed when Close begins, done when the goroutine has ended.
	closing chan struct{}
	done    chan struct{}

	mu     sync.Mutex
	closed bool // guarded by mu
	// queue are the writes to propose, oldest first; guarded by mu.
	queue []*write
	// open are the writes without an answer; guarded by mu.
	open map[*write]struct{}
	// sequence numbers the writes; guarded by mu.
	sequence uint64
	// replying counts running calls of reply. It grows only under mu while closed is
	// false, so that Close can wait for it.
	replying sync.WaitGroup
}

// write is one message or barrier in flight.
type write struct {
	// message is nil for a barrier.
	message  Message
	reply    func(Answer)
	sequence uint64
	// timer answers the write after Timeout; guarded by Proposer.mu.
	timer *time.Timer
	// proposed means that raft may have the entry; guarded by Proposer.mu.
	proposed bool
}

// NewProposer starts a proposer over r. Barriers are answered with the index of
// fsm's state, which must be the FSM that r applies to. Close it to release it.
func NewProposer(r Raft, fsm *FSM, opts Options) (*Proposer, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if r == nil || fsm == nil {
		return nil, errors.New("a proposer needs a raft and its FSM")
	}
	p := &Proposer{
		raft:     r,
		fsm:      fsm,
		opts:     opts,
		wake:     make(chan struct{}, 1),
		inFlight: make(chan struct{}, opts.MaxInFlight),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
		open:     make(map[*write]struct{}),
	}
	go p.run()
	return p, nil
}

// Propose queues a message. If there is no room or the proposer is closed, it returns false and
// does nothing else. Otherwise it calls reply exactly once, from any goroutine and with no lock
// held. reply must not block. After the call the proposer owns the message: the caller must not
// change it.
func (p *Proposer) Propose(m Message, reply func(Answer)) (queued bool) {
	return p.enqueue(&write{message: m, reply: reply})
}

// Barrier queues a barrier, which is answered after this server has applied all earlier entries.
// Otherwise it works like [Proposer.Propose].
func (p *Proposer) Barrier(reply func(Answer)) (queued bool) {
	return p.enqueue(&write{reply: reply})
}

func (p *Proposer) enqueue(w *write) bool {
	p.mu.Lock()
	if p.closed || len(p.queue) >= p.opts.QueueSize {
		p.mu.Unlock()
		return false
	}
	p.sequence++
	w.sequence = p.sequence
	w.timer = time.AfterFunc(p.opts.Timeout, func() { p.expire(w) })
	p.queue = append(p.queue, w)
	p.open[w] = struct{}{}
	p.mu.Unlock()

	select {
	case p.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
	return true
}

// Close answers every open write: with Unknown if raft may have the entry, otherwise with Rejected.
// It waits for the proposer's goroutine, at most EnqueueTimeout or until raft is shut down. After
// Close has returned, no reply runs or is called. Goroutines that wait for raft's answers end with
// these answers; see [Proposer.Settle]. Do not call Close from a reply. A second call waits like
// the first.
func (p *Proposer) Close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.queue = nil
	open := slices.SortedFunc(maps.Keys(p.open), func(a, b *write) int { return cmp.Compare(a.sequence, b.sequence) })
	answers := make([]Answer, len(open))
	for i, w := range open {
		answers[i] = p.take(w, ErrClosed)
	}
	p.mu.Unlock()

	if first {
		close(p.closing)
	}
	for i, w := range open {
		p.reply(w, answers[i])
	}
	<-p.done
	p.replying.Wait()
}

// run proposes the queued writes until the proposer is closed.
func (p *Proposer) run() {
	defer close(p.done)
	for {
		select {
		case p.inFlight <- struct{}{}:
		case <-p.closing:
			return
		}
		w, ok := p.next()
		if !ok {
			<-p.inFlight
			return
		}
		if !p.propose(w) {
			<-p.inFlight
		}
	}
}

// next waits for a write. It returns false when the proposer is closed.
func (p *Proposer) next() (*write, bool) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 {
			w := p.queue[0]
			p.queue[0] = nil
			p.queue = p.queue[1:]
			p.mu.Unlock()
			return w, true
		}
		p.mu.Unlock()

		select {
		case <-p.wake:
		case <-p.closing:
			return nil, false
		}
	}
}

// propose gives a write to raft, and starts a goroutine that waits for the answer. It returns
// false if it did not call raft.
func (p *Proposer) propose(w *write) bool {
	if w.message == nil {
		if !p.begin(w) {
			return false
		}
		future := p.raft.Barrier(p.opts.EnqueueTimeout)
		go p.await(w, func() Answer { return p.barrierAnswer(future) })
		return true
	}
	if err := checkWritable(w.message, p.fsm.Store().Snapshot()); err != nil {
		p.answer(w, rejected(err))
		return false
	}
	entry, err := Encode(w.message)
	if err != nil {
		p.answer(w, rejected(err))
		return false
	}
	if len(entry) > MaxRequestEntry && isRequest(w.message) {
		p.answer(w, rejected(fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(entry), MaxRequestEntry)))
		return false
	}
	if len(entry) > raft.SuggestedMaxDataSize {
		p.opts.Logger.Warn("a raft entry is larger than raft suggests", "type", w.message.Type(), "bytes", len(entry))
	}
	if !p.begin(w) {
		return false
	}
	future := p.raft.Apply(entry, p.opts.EnqueueTimeout)
	go p.await(w, func() Answer { return answerOf(future) })
	return true
}

// MaxRequestEntry bounds, in bytes, the entries whose size a client chooses. The proposer never
// refuses entries of the drainer and the scheduler for their size: they would propose the same
// entry again. They bound their entries themselves. A plan contains the body of its job.
const MaxRequestEntry = 4 << 20

// isRequest reports whether a client chooses the size of the message.
func isRequest(m Message) bool {
	switch m.Type() {
	case JobRegisterType, NodeRegisterType, AllocClientUpdateType:
		return true
	}
	return false
}

// begin records that raft may have the entry from now on. It returns false if the write is already
// answered. Such a write must not be proposed.
func (p *Proposer) begin(w *write) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, open := p.open[w]
	if open {
		w.proposed = true
	}
	return open
}

// await answers a write when raft answers its future, which may never happen.
func (p *Proposer) await(w *write, result func() Answer) {
	a := result()
	<-p.inFlight
	p.answer(w, a)
}

func (p *Proposer) barrierAnswer(f raft.Future) Answer {
	if err := f.Error(); err != nil {
		return failed(err)
	}
	if err := p.fsm.Err(); err != nil { // the state lacks entries before the barrier
		return unknown(err)
	}
	return Answer{Outcome: raftwrite.Applied, Index: p.fsm.Store().Snapshot().Index()}
}

// expire answers a write after Timeout.
func (p *Proposer) expire(w *write) {
	p.mu.Lock()
	if _, open := p.open[w]; !open {
		p.mu.Unlock()
		return
	}
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	a := p.take(w, fmt.Errorf("%w: %s", ErrNoAnswer, p.opts.Timeout))
	p.mu.Unlock()
	p.reply(w, a)
}

// answer answers a write, unless it is answered already.
func (p *Proposer) answer(w *write, a Answer) {
	p.mu.Lock()
	if _, open := p.open[w]; !open {
		p.mu.Unlock()
		return
	}
	p.take(w, nil)
	p.mu.Unlock()
	p.reply(w, a)
}

// take removes an open write. The caller holds mu, and must call reply afterwards. take returns the
// answer for a write that raft has not answered, with err as the reason.
func (p *Proposer) take(w *write, err error) Answer {
	delete(p.open, w)
	w.timer.Stop()
	p.replying.Add(1)
	if w.proposed {
		return unknown(err)
	}
	return rejected(err)
}

// reply calls the reply of a write that take has removed.
func (p *Proposer) reply(w *write, a Answer) {
	defer p.replying.Done()
	if p.opts.OnAnswer != nil {
		p.opts.OnAnswer(w.message, a)
	}
	w.reply(a)
}
