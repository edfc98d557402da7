package world

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Operator sends requests to the leader.
type Operator struct {
	world *World
	// Requests builds the messages for [Operator.Propose]; never nil.
	Requests *setting.Requests
	// keys counts the idempotency keys that repeated requests were given.
	keys int
}

func newOperator(w *World) *Operator {
	return &Operator{world: w, Requests: &setting.Requests{
		Truth: w.Truth, Now: w.Now, Clock: w.Clock, Races: func() bool { return w.Log.racing > 0 },
		NewEvalID: w.ids.eval, NewDrainID: w.ids.drain,
	}}
}

// Propose sends a write to the leader. reply gets the answer, unless it is nil. A write of
// a function of [RaftLog.Before] is committed at once.
func (o *Operator) Propose(m shims.Message, reply func(shims.Answer)) {
	if reply == nil {
		reply = func(shims.Answer) {}
	}
	log := o.world.Log
	if log.racing == 0 {
		o.mayRepeat(m)
		if !log.propose(nil, FromOperator, m, reply) {
			reply(rejected())
		}
		return
	}
	answer, err := log.commit(m)
	if err != nil {
		o.world.failure = err
		return
	}
	reply(answer)
}

// mayRepeat repeats a drain request if a fault strikes: at once, or when the operator stops
// waiting for the answer. The request then gets a key.
func (o *Operator) mayRepeat(m shims.Message) {
	request, is := m.(*shims.NodeUpdateDrain)
	faults := o.world.Faults
	if !is || len(faults.armed) == 0 {
		return
	}
	about := target{Words: []string{string(request.Node)}}
	delay, twice := faults.strike(scenario.APIDup, about)
	if !twice {
		if delay, twice = faults.strike(scenario.APITimeout, about); !twice {
			return
		}
	}
	if request.Key == "" {
		o.keys++
		request.Key = fmt.Sprintf("again-%d", o.keys)
	}
	faults.after(delay, func() error {
		o.world.Log.propose(nil, FromOperator, o.Requests.Again(request), func(shims.Answer) {})
		return nil
	})
}

// provoke sends the requests with which faults respond to an applied entry.
func (o *Operator) provoke(a shims.Applied) {
	w := o.world
	if len(w.Faults.armed) == 0 {
		return
	}
	for _, p := range setting.Opportunities(a) {
		delay, strikes := w.Faults.strike(p.Fault, p.Target)
		if !strikes {
			continue
		}
		op := p.Op(w.chance.stream("operation/" + string(p.Fault)))
		w.Faults.after(delay, func() error { return o.do(op) })
	}
}

// do performs an operation of a fault.
func (o *Operator) do(op scenario.Op) error {
	if _, is := op.(*scenario.Restore); is {
		return o.world.Servers.Restore()
	}
	operator := setting.Operator{
		Requests: o.Requests, Scenario: &scenario.Scenario{}, NewAllocID: o.world.ids.alloc,
		Ask: func(m shims.Message) { o.Propose(m, nil) },
	}
	_, err := operator.Do(op)
	return err
}

// retryAfter is the time after which a write that may not have been applied is sent again.
const retryAfter = time.Second

// insist sends a write again until it is applied. build returns nil when the write is no
// longer needed.
func (o *Operator) insist(build func() shims.Message) {
	m := build()
	if m == nil {
		return
	}
	w := o.world
	again := func() { w.At(w.now.Add(retryAfter), func() error { o.insist(build); return nil }) }
	taken := w.Log.propose(nil, FromOperator, m, func(a shims.Answer) {
		if a.Outcome != raftwrite.Applied {
			again()
		}
	})
	if !taken {
		again()
	}
}

// change is a change of a node that a fault makes and later reverts.
type change struct {
	operator *Operator
	// apply and revert build the two writes. They return nil if there is nothing to change.
	apply, revert func() shims.Message
	// sent is the last write that apply built, or nil.
	sent shims.Message
	over bool
}

// start makes the change. It never fails.
func (c *change) start() error {
	c.operator.insist(func() shims.Message {
		if c.over {
			return nil
		}
		m := c.apply()
		if m != nil {
			c.sent = m
		}
		return m
	})
	return nil
}

// end reverts the change, once the last write of apply has left the queue of the log.
func (c *change) end() error {
	c.over = true
	w := c.operator.world
	if w.Log.holds(c.sent) {
		w.At(w.now.Add(retryAfter), c.end)
		return nil
	}
	c.operator.insist(c.revert)
	return nil
}
