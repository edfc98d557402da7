package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Source says who proposed a write.
type Source uint8

// The sources of writes.
const (
	FromDrainer Source = iota
	FromScheduler
	FromClients
	FromOperator

	sourceCount
)

// Write is one proposed write, before its fate is known.
type Write struct {
	Source Source
	// N counts the writes of the source from zero, barriers included.
	N int
	// Message is what is proposed, or nil for a barrier.
	Message shims.Message
}

// Fate is what becomes of a proposed write.
type Fate uint8

// The fates of writes. The log keeps its order whatever they are: a write that is
// late holds up those after it.
const (
	// Apply applies the write and says so.
	Apply Fate = iota
	// Slow does so after [Options].Late.
	Slow
	// Reject never applies the write and says so.
	Reject
	// UnknownApplied applies the write and says that it is not known.
	UnknownApplied
	// UnknownLate says at once that it is not known, and applies the write after
	// [Options].Late.
	UnknownLate
	// UnknownLost never applies the write and says that it is not known.
	UnknownLost
	// NoRoom does not take the write.
	NoRoom
)

// String returns the fate in the words of test names.
func (f Fate) String() string {
	switch f {
	case Apply:
		return "applied"
	case Slow:
		return "slow"
	case Reject:
		return "rejected"
	case UnknownApplied:
		return "unknown-applied"
	case UnknownLate:
		return "unknown-late"
	case UnknownLost:
		return "unknown-lost"
	case NoRoom:
		return "no-room"
	}
	return "unknown fate"
}

// Errors with which the log answers the writes that are to fail.
var (
	errRejected = errors.New("simulated: not the leader")
	errUnknown  = errors.New("simulated: leadership lost while committing")
)

// raftLog is raft's contract without raft: one log, in which what is proposed is
// applied at a later step, in order, or fails in one of the ways that raft has.
type raftLog struct {
	world *World
	// entries are what was committed, entries[i] having index i+1. Barriers and
	// elections have entries that no state machine sees.
	entries []logEntry
	queue   []*proposal
	// hooks are what is to be done just before a write is applied.
	hooks []hook
	// count counts the writes of each source.
	count [sourceCount]int
}

// logEntry is one committed entry: a message, or what a world begins with, or
// neither if it is raft's own.
type logEntry struct {
	data []byte
	// begin writes what no message of the log could; or nil.
	begin func(*statestore.Txn) error
}

// hook is something that is to be done once, just before the first write of a kind
// is applied.
type hook struct {
	before func(shims.Message) bool
	do     func() error
}

// proposal is a write that waits for its turn.
type proposal struct {
	Write
	fate Fate
	// reply is told what became of it; nil if nobody wants to know.
	reply func(shims.Answer)
	due   time.Time
}

// propose queues a write and reports whether it was taken.
func (l *raftLog) propose(s Source, m shims.Message, reply func(shims.Answer)) bool {
	p := &proposal{Write: Write{Source: s, N: l.count[s], Message: m}, reply: reply, due: l.world.now}
	l.count[s]++
	if l.world.fate != nil {
		p.fate = l.world.fate(p.Write)
	}
	if p.Message == nil && p.fate == UnknownLate {
		p.fate = UnknownLost // a barrier has no effect that could come late
	}
	switch p.fate {
	case NoRoom:
		return false
	case Slow:
		p.due = p.due.Add(l.world.options.Late)
	case UnknownLate:
		// The answer must not come before propose has returned.
		early := &proposal{Write: p.Write, fate: UnknownLost, reply: p.reply, due: p.due}
		p.due, p.fate, p.reply = p.due.Add(l.world.options.Late), Apply, nil
		l.queue = append(l.queue, early)
	}
	l.queue = append(l.queue, p)
	return true
}

func (l *raftLog) ready() bool { return len(l.queue) > 0 && !l.world.now.Before(l.queue[0].due) }

func (l *raftLog) due() time.Time {
	if len(l.queue) == 0 {
		return time.Time{}
	}
	return l.queue[0].due
}

// step settles the first write of the queue.
func (l *raftLog) step() error {
	p := l.queue[0]
	l.queue = l.queue[1:]
	answer, err := l.settle(p)
	if err != nil {
		return err
	}
	if p.reply != nil {
		p.reply(answer)
	}
	return nil
}

func (l *raftLog) settle(p *proposal) (shims.Answer, error) {
	switch p.fate {
	case Reject:
		return shims.Answer{Outcome: drainer.Rejected, Err: errRejected}, nil
	case UnknownLost:
		return shims.Answer{Outcome: drainer.Unknown, Err: errUnknown}, nil
	}
	if err := l.runHooks(p.Message); err != nil {
		return shims.Answer{}, err
	}
	answer, err := l.commit(p.Message)
	if p.fate == UnknownApplied {
		answer = shims.Answer{Outcome: drainer.Unknown, Err: errUnknown}
	}
	return answer, err
}

// runHooks does what is to be done before the message is applied.
func (l *raftLog) runHooks(m shims.Message) error {
	for i, h := range l.hooks {
		if m != nil && h.before(m) {
			l.hooks = slices.Delete(l.hooks, i, i+1)
			return h.do()
		}
	}
	return nil
}

// commit appends a message, nil for an entry of raft's own, and has the leader
// apply what it has not.
func (l *raftLog) commit(m shims.Message) (shims.Answer, error) {
	var data []byte
	if m != nil {
		var err error
		if data, err = shims.Encode(m); err != nil {
			return shims.Answer{Outcome: drainer.Rejected, Err: err}, nil
		}
	}
	l.entries = append(l.entries, logEntry{data: data})
	leader := l.world.leader.replica
	response, err := leader.catchUp(l.entries)
	if err != nil {
		return shims.Answer{}, fmt.Errorf("applying entry %d: %w", len(l.entries), err)
	}
	if m == nil {
		return shims.Answer{Outcome: drainer.Applied, Index: leader.state().Index()}, nil
	}
	return shims.Answer{Outcome: drainer.Applied, Index: uint64(len(l.entries)), Response: response}, nil
}

// resign settles what a leader that is gone had proposed: it survives in the log
// and is applied before anything of the next leader's, or is lost. Clients and
// operators ask the next leader.
func (l *raftLog) resign(survive bool) error {
	var kept []*proposal
	for _, p := range l.queue {
		ours := p.Source == FromDrainer || p.Source == FromScheduler
		if !ours {
			kept = append(kept, p)
			continue
		}
		if survive && p.fate != Reject && p.fate != UnknownLost {
			if err := l.append(p.Message); err != nil {
				return err
			}
		}
		if p.reply != nil {
			p.reply(shims.Answer{Outcome: drainer.Unknown, Err: errUnknown})
		}
	}
	l.queue = kept
	return nil
}

// append appends an entry that the next leader applies with its own first one.
func (l *raftLog) append(m shims.Message) error {
	if m == nil {
		return nil
	}
	if err := l.runHooks(m); err != nil {
		return err
	}
	data, err := shims.Encode(m)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", m.Type(), err)
	}
	l.entries = append(l.entries, logEntry{data: data})
	return nil
}
