package world

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
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
	// survivors counts the entries of leaders that were gone when they were applied.
	survivors int
}

// logEntry is one committed entry: a message, or what a world begins with, or
// neither if it is raft's own.
type logEntry struct {
	data []byte
	// begin writes what no message of the log could; or nil.
	begin func(*statestore.Txn) error
}

// propose queues a write and reports whether it was taken.
func (l *raftLog) propose(from *leadership, s Source, m shims.Message, reply func(shims.Answer)) bool {
	w := l.world
	p := &proposal{Write: Write{Source: s, N: l.count[s], Message: m}, from: from, reply: reply}
	l.count[s]++
	if m != nil {
		var err error
		if p.data, err = shims.Encode(m); err != nil {
			p.fate = Reject
		}
	}
	if from != nil && from != w.leader {
		from.limbo = append(from.limbo, p)
		p.tell(true)
		return true
	}
	late := w.options.Late
	if p.fate == Apply {
		p.fate, late = w.decide(p.Write, late)
	}
	if p.Message == nil && p.fate == UnknownLate {
		p.fate = UnknownLost // a barrier has no effect that could come late
	}
	leaves := w.leader.server.awake(w.now)
	p.held = from != nil && leaves.After(w.now)
	p.due = leaves.Add(w.draw("commit", w.options.Commit))
	switch p.fate {
	case NoRoom:
		p.tell(false)
		return false
	case Slow:
		p.due = p.due.Add(late)
	case UnknownLate:
		// The answer must not come before propose has returned.
		early := &proposal{Write: p.Write, from: from, fate: UnknownLost, reply: p.reply, due: p.due, data: p.data}
		p.due, p.fate, p.reply = p.due.Add(late), Apply, nil
		l.queue = append(l.queue, early)
	}
	l.queue = append(l.queue, p)
	p.tell(true)
	return true
}

// wants is when the first write of the queue is due: the log keeps its order.
func (l *raftLog) wants(time.Time) time.Time {
	if len(l.queue) == 0 {
		return time.Time{}
	}
	return l.queue[0].due
}

// step settles the first write of the queue.
func (l *raftLog) step() error {
	if len(l.queue) == 0 || l.world.now.Before(l.queue[0].due) {
		return nil
	}
	p := l.queue[0]
	l.queue = l.queue[1:]
	answer, err := l.settle(p)
	if err != nil {
		return err
	}
	p.answer(answer)
	return nil
}

func (l *raftLog) settle(p *proposal) (shims.Answer, error) {
	switch p.fate {
	case Reject:
		return shims.Answer{Outcome: drainer.Rejected, Err: errRejected}, nil
	case UnknownLost:
		return unknown(), nil
	}
	if err := l.race(p.Message); err != nil {
		return shims.Answer{}, err
	}
	answer, err := l.commitEntry(p.data)
	if p.fate == UnknownApplied {
		answer = unknown()
	}
	return answer, err
}

// commit appends a message and has the leader apply what it has not.
func (l *raftLog) commit(m shims.Message) (shims.Answer, error) {
	data, err := shims.Encode(m)
	if err != nil {
		return shims.Answer{Outcome: drainer.Rejected, Err: err}, nil
	}
	return l.commitEntry(data)
}

// commitEntry appends an entry, nil for one of raft's own, and has the leader apply
// what it has not.
func (l *raftLog) commitEntry(data []byte) (shims.Answer, error) {
	l.add(data)
	leader := l.world.leader
	response, err := leader.server.machine.catchUp(l.entries)
	if err != nil {
		return shims.Answer{}, fmt.Errorf("applying entry %d: %w", len(l.entries), err)
	}
	leader.catchUp()
	if data == nil {
		return shims.Answer{Outcome: drainer.Applied, Index: leader.server.machine.state().Index()}, nil
	}
	return shims.Answer{Outcome: drainer.Applied, Index: uint64(len(l.entries)), Response: response}, nil
}

// add adds a committed entry, nil for one of raft's own.
func (l *raftLog) add(data []byte) {
	l.entries = append(l.entries, logEntry{data: data})
	l.world.hash.bytes(data)
}

func (l *raftLog) length() int { return len(l.entries) }
