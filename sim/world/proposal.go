package world

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

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

func unknown() shims.Answer { return shims.Answer{Outcome: drainer.Unknown, Err: errUnknown} }

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
