package live

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// runOperationFaults performs the operations of faults that strike when an entry is applied.
func (p *player) runOperationFaults(a shims.Applied) {
	if !p.faults.any() {
		return
	}
	for _, opportunity := range setting.Opportunities(a) {
		delay, strikes := p.faults.strike(opportunity.Fault, opportunity.Target)
		if !strikes {
			continue
		}
		op := p.random.operation(opportunity)
		p.laterUnlessFaultsEnded(delay, func() error { return p.operator.do(op) })
	}
}

// ask sends an operator's request. If a fault strikes, the operator repeats a request about a
// drain: at once, or when it stops waiting for the answer. Both requests then have the same
// idempotency key.
func (p *player) ask(m shims.Message) {
	if r, is := m.(*shims.NodeUpdateDrain); is {
		if delay, repeated := p.repeats(r.Node); repeated {
			if r.Key == "" {
				r.Key = fmt.Sprintf("again-%d", p.ids.keys.Add(1))
			}
			p.laterUnlessFaultsEnded(delay, func() error {
				p.servers.ask(p.requests.Again(r))
				return nil
			})
		}
	}
	p.servers.ask(m)
}

// repeats reports whether a fault repeats a request about a node's drain, and after which delay.
func (p *player) repeats(id cluster.NodeID) (delay time.Duration, repeated bool) {
	about := target{Words: []string{string(id)}}
	if delay, repeated = p.faults.strike(scenario.APIDup, about); repeated {
		return delay, repeated
	}
	return p.faults.strike(scenario.APITimeout, about)
}

// laterUnlessFaultsEnded adds a task after a delay. The task does nothing if the faults have
// ended by then.
func (p *player) laterUnlessFaultsEnded(d time.Duration, do func() error) {
	time.AfterFunc(d, func() {
		p.servers.do(func() error {
			if p.faults.over() {
				return nil
			}
			return do()
		})
	})
}
