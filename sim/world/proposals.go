package world

import "github.com/seed-f9cf0b39/nodedrain/shims"

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
