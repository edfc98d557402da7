package world

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// proposal is a write in the queue of the log.
type proposal struct {
	Write
	// step is the number of the step that proposed the write.
	step int
	// from is the leadership that proposed the write. It is nil for clients and operators,
	// because they send to any leader. leader is the leadership at that time.
	from, leader *leadership
	fate         Fate
	// reply gets the answer; nil if the writer needs none.
	reply func(shims.Answer)
	// answered: the writer already has an answer. The write then exists only in its
	// leader's log.
	answered bool
	// leaves is the time at which the write leaves its server's process. due is the time at
	// which the log applies it.
	leaves, due time.Time
	// data is the entry, nil for a barrier.
	data []byte
	// deposes: a fault deposes the leader before the leader gets the answer.
	deposes bool
}

// late returns the items to queue for the proposal. by is the delay of a late write.
// [UnknownLate] needs two items: one for the answer, which must come after propose has returned,
// and one for the late apply.
func (p *proposal) late(by time.Duration) []*proposal {
	switch p.fate {
	case Slow:
		p.due = p.due.Add(by)
	case UnknownLate:
		answer := *p
		answer.fate = UnknownLost
		if p.Message == nil {
			return []*proposal{&answer} // a barrier has no effect
		}
		p.fate, p.reply, p.answered, p.due = Apply, nil, true, p.due.Add(by)
		return []*proposal{&answer, p}
	}
	return []*proposal{p}
}

// applies reports whether the write is applied, if its leader still leads when it is due.
func (p *proposal) applies() bool { return p.fate != Reject && p.fate != UnknownLost }

// inLog reports whether the write is in the leader's log. If it is, it may survive the leader.
func (p *proposal) inLog(now time.Time) bool { return p.applies() && !now.Before(p.leaves) }

// entry returns the description of the write's entry.
func (p *proposal) entry() Entry {
	term := p.leader.world.Term()
	if p.from != nil || p.answered {
		term = p.leader.term
	}
	return Entry{Term: term, Proposed: true, Source: p.Source, N: p.N, Step: p.step}
}

// answer gives the writer its answer.
func (p *proposal) answer(a shims.Answer) {
	if p.reply == nil {
		return
	}
	if p.Source == FromDrainer {
		p.from.world.observer.Answered(p.from.term, p.N, a)
	}
	p.reply(a)
}

// notify calls the observers when a drainer has proposed the write.
func (p *proposal) notify(taken bool) {
	if p.Source != FromDrainer {
		return
	}
	p.from.world.observer.Proposed(Proposal{Write: p.Write, Term: p.from.term, Bytes: len(p.data), Taken: taken})
}

var (
	errRejected = errors.New("simulated: not the leader")
	errUnknown  = errors.New("simulated: leadership lost while committing")
)

func rejected() shims.Answer { return shims.Answer{Outcome: raftwrite.Rejected, Err: errRejected} }
func unknown() shims.Answer  { return shims.Answer{Outcome: raftwrite.Unknown, Err: errUnknown} }

// proposals sends the writes of one source of a term to the log.
type proposals struct {
	log    *RaftLog
	source Source
	from   *leadership // never nil
	// answered is called after each reply, unless it is nil.
	answered func()
	// late returns by how much an answer is late. Nil is never.
	late func() time.Duration
}

var _ shims.Proposals = proposals{}

func (p proposals) Propose(m shims.Message, reply func(shims.Answer)) (queued bool) {
	answer := func(a shims.Answer) {
		reply(a)
		if p.answered != nil {
			p.answered()
		}
	}
	return p.log.propose(p.from, p.source, m, func(a shims.Answer) {
		w := p.log.world
		if p.late != nil {
			if delay := p.late(); delay > 0 {
				w.At(w.now.Add(delay), func() error {
					answer(a)
					return nil
				})
				return
			}
		}
		answer(a)
	})
}

func (p proposals) Barrier(reply func(shims.Answer)) (queued bool) { return p.Propose(nil, reply) }

// Source is the kind of component that proposes a write.
type Source uint8

// The sources of writes.
const (
	FromDrainer Source = iota
	FromScheduler
	FromClients
	FromOperator
	FromCollector
	FromVolumes
	FromConfirmer

	sourceCount
)

// String returns the source's name in scenarios.
func (s Source) String() string {
	names := [sourceCount]string{"drainer", "scheduler", "clients", "operator", "collector", "volumes", "confirmer"}
	if s >= sourceCount {
		return "unknown source"
	}
	return names[s]
}

// Write is one proposed write, before its fate is decided.
type Write struct {
	Source Source
	// N counts the writes of the source from zero, barriers included.
	N int
	// Message is nil for a barrier.
	Message shims.Message
}

// Words returns the names of a write in scenarios: its source and its kind.
func (w Write) Words() []string {
	kind := string(EntryKindOf(w.Message))
	if w.Message == nil {
		kind = "barrier"
	}
	return []string{w.Source.String(), kind}
}

// EntryKindOf returns the name of a message's kind in scenarios. It is empty for other messages.
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
	case *shims.Collect:
		return scenario.Collection
	}
	return ""
}

// Fate decides whether a proposed write is applied, and which answer its writer gets.
type Fate uint8

// The fates of writes. The log keeps its order, so a late write delays the writes after it.
const (
	// Apply applies the write and answers "applied".
	Apply Fate = iota
	// Slow is Apply after a delay; see [Options].Late.
	Slow
	// Reject never applies the write and answers "rejected".
	Reject
	// UnknownApplied applies the write and answers that its outcome is unknown.
	UnknownApplied
	// UnknownLate answers at once that the outcome is unknown, and applies the write after
	// a delay; see [Options].Late.
	UnknownLate
	// UnknownLost never applies the write and answers that its outcome is unknown.
	UnknownLost
	// NoRoom does not accept the write. There is no answer.
	NoRoom
)

// Late reports whether the fate delays the apply of a write.
func (f Fate) Late() bool { return f == Slow || f == UnknownLate }

// String returns the fate's name.
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

// Proposal is a write that a drainer proposes.
type Proposal struct {
	Write
	// Term is the drainer's term.
	Term int
	// Bytes is the size of the entry, zero for a barrier.
	Bytes int
	// Taken: the log accepted the write.
	Taken bool
}
