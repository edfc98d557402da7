package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
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

// EntryKindOf is the kind of a message in the words of scenarios, or empty.
func EntryKindOf(m shims.Message) scenario.EntryKind {
	switch m.(type) {
	case *shims.AllocUpdateDesiredTransition:
		return scenario.Marks
	case *shims.NodesDrainComplete:
		return scenario.Completions
	case *shims.ApplyPlan:
		return scenario.Plan
	case *shims.AllocClientUpdate:
		return scenario.Report
	}
	return ""
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
	// from is the leadership that proposed it, or nil: clients and operators ask
	// whoever leads.
	from *leadership
	fate Fate
	// reply is told what became of it; nil if nobody wants to know.
	reply func(shims.Answer)
	due   time.Time
	// data is the entry, nil for a barrier.
	data []byte
	// held says that it has not left its server's process, which stands still.
	held bool
}

// answer says what became of it.
func (p *proposal) answer(a shims.Answer) {
	if p.reply == nil {
		return
	}
	if p.Source == FromDrainer {
		for _, f := range p.from.world.onAnswer {
			f(p.from.term, p.N, a)
		}
	}
	p.reply(a)
}

// Proposal is a write that a drainer proposes.
type Proposal struct {
	Write
	// Term is the drainer's term.
	Term int
	// Bytes is the size of the entry, zero for a barrier.
	Bytes int
	// Taken says that the log took it.
	Taken bool
}

// tell tells those who observe of a drainer's proposal.
func (p *proposal) tell(taken bool) {
	if p.Source != FromDrainer {
		return
	}
	for _, f := range p.from.world.onPropose {
		f(Proposal{Write: p.Write, Term: p.from.term, Bytes: len(p.data), Taken: taken})
	}
}

func unknown() shims.Answer { return shims.Answer{Outcome: drainer.Unknown, Err: errUnknown} }

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

// race does what comes between the plan of a message and its apply.
func (l *raftLog) race(m shims.Message) error {
	if err := l.runHooks(m); err != nil {
		return err
	}
	return l.world.refuseSome(m)
}

// runHooks does what a script has to do before the message is applied.
func (l *raftLog) runHooks(m shims.Message) error {
	for i, h := range l.hooks {
		if m != nil && h.before(m) {
			l.hooks = slices.Delete(l.hooks, i, i+1)
			l.world.racing = true
			defer func() { l.world.racing = false }()
			return h.do()
		}
	}
	return nil
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

// resign settles what a leader that is gone had proposed: it survives in the log
// and is applied before anything of the next leader's, or is lost. What had not left
// its process is lost anyway. Clients and operators ask the next leader.
func (l *raftLog) resign(old *leadership, survive bool) error {
	var kept []*proposal
	for _, p := range l.queue {
		if p.from == nil {
			kept = append(kept, p)
			continue
		}
		if survive && !p.held && p.fate != Reject && p.fate != UnknownLost {
			if err := l.append(p); err != nil {
				return err
			}
		}
		old.limbo = append(old.limbo, p)
	}
	l.queue = kept
	return nil
}

// append appends an entry that the next leader applies with its own first one.
func (l *raftLog) append(p *proposal) error {
	if p.Message == nil {
		return nil
	}
	if err := l.race(p.Message); err != nil {
		return err
	}
	l.add(p.data)
	l.survivors++
	if l.world.options.Views {
		// The machine is the truth, whoever has seen it.
		if _, err := l.world.leader.server.machine.catchUp(l.entries); err != nil {
			return fmt.Errorf("applying entry %d: %w", len(l.entries), err)
		}
	}
	return nil
}

// add adds a committed entry, nil for one of raft's own.
func (l *raftLog) add(data []byte) {
	l.entries = append(l.entries, logEntry{data: data})
	l.world.hash.bytes(data)
}

func (l *raftLog) length() int { return len(l.entries) }
