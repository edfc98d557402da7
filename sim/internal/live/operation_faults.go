package live

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// provoke performs the operations of faults that strike when an entry is applied.
func (p *player) provoke(a shims.Applied) {
	if !p.faults.any() {
		return
	}
	for _, opportunity := range setting.Opportunities(a) {
		delay, strikes := p.faults.strike(opportunity.Fault, opportunity.Target)
		if !strikes {
			continue
		}
		op := p.random.operation(opportunity)
		p.unlessCalm(delay, func() error { return p.operator.do(op) })
	}
}

// ask sends an operator's request. If a fault strikes, the operator repeats a request about a
// drain: at once, or after waiting in vain for an answer. The request has a key then.
func (p *player) ask(m shims.Message) {
	if r, is := m.(*shims.NodeUpdateDrain); is {
		if delay, repeated := p.repeats(r.Node); repeated {
			if r.Key == "" {
				r.Key = fmt.Sprintf("again-%d", p.ids.keys.Add(1))
			}
			p.unlessCalm(delay, func() error {
				p.servers.ask(p.requests.Again(r))
				return nil
			})
		}
	}
	p.servers.ask(m)
}

// repeats reports whether a request about a node's drain is repeated, and after how long.
func (p *player) repeats(id cluster.NodeID) (delay time.Duration, repeated bool) {
	about := target{Words: []string{string(id)}}
	if delay, repeated = p.faults.strike(scenario.APIDup, about); repeated {
		return delay, repeated
	}
	return p.faults.strike(scenario.APITimeout, about)
}

// unlessCalm adds a task after a while, unless the faults have ended by then.
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
