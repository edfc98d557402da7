package world

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// proposal is a write that waits for its turn.
type proposal struct {
	Write
	// step is the step in which it was proposed.
	step int
	// from is the leadership that proposed it, or nil: clients and operators ask
	// whoever leads. leader is who led when it was proposed.
	from, leader *leadership
	fate         Fate
	// reply is told what became of it; nil if nobody wants to know.
	reply func(shims.Answer)
	// answered says that its writer has been told already, so that it is in the log of
	// its leader and of nobody else.
	answered bool
	// leaves is when it leaves its server's process, due when it is settled.
	leaves, due time.Time
	// data is the entry, nil for a barrier.
	data []byte
	// deposes says that the leader is deposed before it has the answer.
	deposes bool
}

// late returns the proposal as it waits in the queue, if it is late twice: once to be
// answered, and once to be applied. The answer must not come before propose has
// returned.
func (p *proposal) late(by time.Duration) []*proposal {
	switch p.fate {
	case Slow:
		p.due = p.due.Add(by)
	case UnknownLate:
		told := *p
		told.fate = UnknownLost
		if p.Message == nil {
			return []*proposal{&told} // a barrier has no effect that could come late
		}
		p.fate, p.reply, p.answered, p.due = Apply, nil, true, p.due.Add(by)
		return []*proposal{&told, p}
	}
	return []*proposal{p}
}

// applies reports whether it is applied, if its leader leads by then.
func (p *proposal) applies() bool { return p.fate != Reject && p.fate != UnknownLost }

// inLog reports whether its leader has it in its log, where the next may find it.
func (p *proposal) inLog(now time.Time) bool { return p.applies() && !now.Before(p.leaves) }

// entry is the entry that it becomes.
func (p *proposal) entry() Entry {
	term := p.leader.world.terms
	if p.from != nil || p.answered {
		term = p.leader.term
	}
	return Entry{Term: term, Proposed: true, Source: p.Source, N: p.N, Step: p.step}
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

// tell tells those who observe of a drainer's proposal.
func (p *proposal) tell(taken bool) {
	if p.Source != FromDrainer {
		return
	}
	for _, f := range p.from.world.onPropose {
		f(Proposal{Write: p.Write, Term: p.from.term, Bytes: len(p.data), Taken: taken})
	}
}

// Errors with which the log answers the writes that are to fail.
var (
	errRejected = errors.New("simulated: not the leader")
	errUnknown  = errors.New("simulated: leadership lost while committing")
)

func rejected() shims.Answer { return shims.Answer{Outcome: raftwrite.Rejected, Err: errRejected} }
func unknown() shims.Answer  { return shims.Answer{Outcome: raftwrite.Unknown, Err: errUnknown} }

// proposals are what one source proposes to the log.
type proposals struct {
	log    *raftLog
	source Source
	from   *leadership // never nil
	// answered is called after each reply; nil does nothing.
	answered func()
}

var _ shims.Proposals = proposals{}

func (p proposals) Propose(m shims.Message, reply func(shims.Answer)) (queued bool) {
	return p.log.propose(p.from, p.source, m, func(a shims.Answer) {
		reply(a)
		if p.answered != nil {
			p.answered()
		}
	})
}

func (p proposals) Barrier(reply func(shims.Answer)) (queued bool) { return p.Propose(nil, reply) }
