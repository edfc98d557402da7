package live

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// ask asks whoever leads for a write, and does not wait for an answer.
func (p *player) ask(m shims.Message) {
	p.mayComeAgain(m)
	p.servers.propose(world.FromOperator, m, func(shims.Answer) {})
}

// newRequests returns what makes requests of the servers' states. They are there when the
// first is made.
func (p *player) newRequests() *setting.Requests {
	return &setting.Requests{
		Truth: func() *statestore.Snapshot { return p.servers.truth() },
		Races: func() bool { return p.servers.races() },
		Now:   time.Now, Clock: time.Now, NewEvalID: p.ids.eval, NewDrainID: p.ids.drain,
	}
}
