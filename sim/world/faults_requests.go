package world

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
)

// provoke has operators do what faults want of them now that an entry was applied.
func (w *World) provoke(a shims.Applied) {
	if len(w.faults.armed) == 0 {
		return
	}
	for _, p := range setting.Provocations(a) {
		delay, strikes := w.strike(p.Fault, p.Target)
		if !strikes {
			continue
		}
		op := p.Op(w.streams.of("operation/" + string(p.Fault)))
		w.unlessCalm(delay, func() error { return w.operate(op) })
	}
}

// operate does what a fault has operators do.
func (w *World) operate(op scenario.Op) error {
	if _, is := op.(*scenario.Restore); is {
		return w.Restore()
	}
	hands := setting.Operator{
		Requests: w.requests, Scenario: &scenario.Scenario{}, NewAllocID: w.ids.alloc,
		Ask: func(m shims.Message) { w.Propose(m, nil) },
	}
	_, err := hands.Do(op)
	return err
}

// mayComeAgain has a request about a drain come again, if that is what a fault wants: at
// once, or when whoever asked has waited for an answer long enough. It has a key then.
func (w *World) mayComeAgain(m shims.Message) {
	request, is := m.(*shims.NodeUpdateDrain)
	if !is || len(w.faults.armed) == 0 {
		return
	}
	about := target{Words: []string{string(request.Node)}}
	delay, twice := w.strike(scenario.APIDup, about)
	if !twice {
		if delay, twice = w.strike(scenario.APITimeout, about); !twice {
			return
		}
	}
	if request.Key == "" {
		w.faults.keys++
		request.Key = fmt.Sprintf("again-%d", w.faults.keys)
	}
	w.unlessCalm(delay, func() error {
		w.log.propose(nil, FromOperator, w.requests.Again(request), func(shims.Answer) {})
		return nil
	})
}

// mayJump sets a server's clock, if that is what a fault wants.
func (w *World) mayJump(s *server) {
	if len(w.faults.armed) == 0 {
		return
	}
	ahead := s.ahead
	if by, strikes := w.strike(scenario.ClockForward, target{}); strikes {
		ahead += by
	}
	if by, strikes := w.strike(scenario.ClockBack, target{}); strikes {
		ahead -= by
	}
	if by, strikes := w.strike(scenario.ClockSkew, target{}); strikes {
		ahead = by
		if w.streams.of("operation/"+string(scenario.ClockSkew)).IntN(2) == 1 {
			ahead = -by
		}
	}
	if ahead != s.ahead {
		w.SetClock(s.number, ahead)
	}
}
