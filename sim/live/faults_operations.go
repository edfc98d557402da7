package live

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// provoke has operators do what faults want of them now that an entry was applied.
func (p *player) provoke(a shims.Applied) {
	if !p.faults.any() {
		return
	}
	for _, opportunity := range setting.Provocations(a) {
		delay, strikes := p.faults.strike(opportunity.Fault, opportunity.Target)
		if !strikes {
			continue
		}
		op := p.chance.operation(opportunity)
		p.unlessCalm(delay, func() error { return p.operator.do(op) })
	}
}

// mayComeAgain has a request about a drain come again, if that is what a fault wants: at
// once, or when whoever asked has waited for an answer long enough. It has a key then.
func (p *player) mayComeAgain(m shims.Message) {
	request, is := m.(*shims.NodeUpdateDrain)
	if !is || p.servers.races() {
		return
	}
	delay, again := p.strikesRequest(request.Node)
	if !again {
		return
	}
	if request.Key == "" {
		request.Key = fmt.Sprintf("again-%d", p.ids.keys.Add(1))
	}
	p.unlessCalm(delay, func() error {
		p.servers.propose(world.FromOperator, p.requests.Again(request), func(shims.Answer) {})
		return nil
	})
}

// strikesRequest says whether a request about a node's drain comes again, and how much
// later.
func (p *player) strikesRequest(id cluster.NodeID) (delay time.Duration, again bool) {
	about := target{Words: []string{string(id)}}
	if delay, again = p.faults.strike(scenario.APIDup, about); again {
		return delay, again
	}
	return p.faults.strike(scenario.APITimeout, about)
}

// unlessCalm has something done after a while, if the faults have not ended by then.
func (p *player) unlessCalm(d time.Duration, do func() error) {
	time.AfterFunc(d, func() {
		p.servers.do(func() error {
			if p.faults.over() {
				return nil
			}
			return do()
		})
	})
}
