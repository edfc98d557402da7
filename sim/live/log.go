package live

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Errors with which the log answers the writes that are to fail.
var (
	errNotLeader = errors.New("simulated: not the leader")
	errLost      = errors.New("simulated: leadership lost while committing")
)

// contract is raft's contract without raft, kept by one goroutine. Many propose at
// once; it takes what they propose in the order in which it came, applies each when it
// is due, and answers. Elections, and whatever else is done to servers, are errands of
// the same goroutine: nothing is applied meanwhile.
type contract struct {
	*player
	members []*peer
	// wake has capacity 1 and is sent to without blocking. stop is closed when the
	// play is over, stopped when the goroutine has ended.
	wake, stop, stopped chan struct{}

	// mu is never held while anything is waited for: nothing in a bubble would move
	// on.
	mu sync.Mutex
	// errands are done before the next write; guarded by mu.
	errands []func() error
	// queue are the proposals without an answer; guarded by mu.
	queue []*proposal
	// leader may write, nil between two terms; guarded by mu, and written to only by
	// the log's goroutine.
	leader *leadership

	// What follows belongs to the log's goroutine.

	entries []entry
	hooks   []hook
	// racing says that what is asked for comes between plan and apply of a write.
	racing bool
	// observed is the index of the last entry that the witness was shown.
	observed uint64
	// deposed are leaderships that do not know that they have ended.
	deposed []*leadership
	// newest is the server that has applied most, never nil; written to only by the
	// log's goroutine.
	newest atomic.Pointer[peer]
	// err is the first thing that went wrong with the play itself, or nil.
	err error
}

// entry is one committed entry: a message, or what a play places past the log, or
// neither if it is raft's own.
type entry struct {
	data  []byte
	place func(*statestore.Txn) error
}

// hook is something that is to be done once, just before the first write of a kind is
// applied.
type hook struct {
	before func(shims.Message) bool
	do     func() error
}

// proposal is a write that waits for its turn.
type proposal struct {
	source world.Source
	// message is nil for a barrier, and data what is written of it.
	message shims.Message
	data    []byte
	// from is the leadership that proposed it, or nil: clients and operators ask
	// whoever leads.
	from *leadership
	fate world.Fate
	// reply is told what became of it, or nil.
	reply func(shims.Answer)
	// leaves is when it leaves its server's process, due when it is settled.
	leaves, due time.Time
}

func (p *proposal) answer(a shims.Answer) {
	if p.reply == nil {
		return
	}
	if p.from == nil {
		p.reply(a)
		return
	}
	p.from.tell(p.source, func() { p.reply(a) })
}

func unknown() shims.Answer { return shims.Answer{Outcome: raftwrite.Unknown, Err: errLost} }

func rejected(err error) shims.Answer { return shims.Answer{Outcome: raftwrite.Rejected, Err: err} }

// run keeps the log until the play is over.
func (l *contract) run() {
	defer close(l.stopped)
	for {
		next, due := l.next()
		if next != nil {
			if err := next(); err != nil && l.err == nil {
				l.err = err
			}
			continue
		}
		select {
		case <-l.stop:
			return
		case <-l.wake:
		case <-due:
		}
	}
}

// next takes what is to be done now. If there is nothing it returns a channel that
// delivers when the first write is due; nil if there is none.
func (l *contract) next() (do func() error, due <-chan time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errands) > 0 {
		do = l.errands[0]
		l.errands = l.errands[1:]
		return do, nil
	}
	if len(l.queue) == 0 {
		return nil, nil
	}
	p := l.queue[0]
	if wait := time.Until(p.due); wait > 0 {
		return nil, time.After(wait)
	}
	l.queue = l.queue[1:]
	return func() error { return l.settle(p) }, nil
}

// do has the log's goroutine do something.
func (l *contract) do(errand func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errands = append(l.errands, errand)
	l.rouse()
}

func (l *contract) rouse() { send(l.wake) }

// take takes a write and reports whether it did. by is the server that proposes it
// as its leader, or nil.
func (l *contract) take(by *peer, p *proposal) (taken bool) {
	if p.message != nil {
		var err error
		if p.data, err = shims.Encode(p.message); err != nil {
			l.do(func() error { p.answer(rejected(err)); return nil })
			return true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if by != nil {
		p.from = by.leads
		switch {
		case p.from == nil: // it does not lead, and knows
			l.errands = append(l.errands, func() error { p.reply(rejected(errNotLeader)); return nil })
			l.rouse()
			return true
		case p.from != l.leader:
			p.from.limbo = append(p.from.limbo, p)
			return true
		}
	}
	return l.enqueue(p)
}

// enqueue decides what becomes of a write. The caller holds mu.
func (l *contract) enqueue(p *proposal) (taken bool) {
	fate, late := l.decide(p)
	p.fate = fate
	if p.message == nil && p.fate == world.UnknownLate {
		p.fate = world.UnknownLost // a barrier has no effect that could come late
	}
	now := time.Now()
	p.leaves = now
	if l.leader != nil {
		p.leaves = l.leader.server.awake(now)
	}
	p.due = p.leaves.Add(l.chance.draw("commit", l.scenario.Cluster.Commit))
	switch p.fate {
	case world.NoRoom:
		return false
	case world.Slow:
		p.due = p.due.Add(late)
	case world.UnknownLate:
		early := *p
		early.fate = world.UnknownLost
		p.due, p.fate, p.reply = p.due.Add(late), world.Apply, nil
		l.queue = append(l.queue, &early)
	}
	l.queue = append(l.queue, p)
	l.rouse()
	return true
}

// settle does with a write what its fate is.
func (l *contract) settle(p *proposal) error {
	switch p.fate {
	case world.Reject:
		p.answer(rejected(errNotLeader))
		return nil
	case world.UnknownLost:
		p.answer(unknown())
		return nil
	}
	if err := l.race(p.message); err != nil {
		return err
	}
	answer, err := l.commit(p.data)
	if err != nil {
		return err
	}
	if p.fate == world.UnknownApplied {
		answer = unknown()
	}
	p.answer(answer)
	return l.failEvals(p.message)
}

// race does what comes between the plan of a message and its apply.
func (l *contract) race(m shims.Message) error {
	i := slices.IndexFunc(l.hooks, func(h hook) bool { return m != nil && h.before(m) })
	if i >= 0 {
		h := l.hooks[i]
		l.hooks = slices.Delete(l.hooks, i, i+1)
		l.racing = true
		defer func() { l.racing = false }()
		if err := h.do(); err != nil {
			return err
		}
	}
	return l.refuseSome(m)
}

// commit appends an entry, nil for one of raft's own, and has the leader apply what it
// has not.
func (l *contract) commit(data []byte) (shims.Answer, error) {
	l.entries = append(l.entries, entry{data: data})
	if l.leader == nil { // between two terms: the next leader applies it
		return unknown(), nil
	}
	response, err := l.applyAll(l.leader.server)
	if err != nil {
		return shims.Answer{}, err
	}
	answer := shims.Answer{Outcome: raftwrite.Applied, Index: uint64(len(l.entries)), Response: response}
	if data == nil {
		answer.Index = l.leader.server.store().Snapshot().Index()
	}
	return answer, nil
}

// applyAll has a server apply what it has not, and returns the response to the last
// entry; nil if that is no message.
func (l *contract) applyAll(s *peer) (response shims.Response, err error) {
	for s.applied < len(l.entries) {
		e := l.entries[s.applied]
		s.applied++
		if response, err = s.apply(uint64(s.applied), e); err != nil {
			return nil, fmt.Errorf("server %d, entry %d: %w", s.number+1, s.applied, err)
		}
	}
	s.outrun() // raft's own entries are told of to nobody
	return response, nil
}
