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
	// keys counts the idempotency keys of repeated requests.
	keys int
}

func newOperator(w *World) *Operator {
	return &Operator{world: w, Requests: &setting.Requests{
		Truth: w.Truth, Now: w.Now, Clock: w.Clock, Races: func() bool { return w.Log.hookDepth > 0 },
		NewEvalID: w.ids.eval, NewDrainID: w.ids.drain,
	}}
}

// Propose sends a write to the leader. reply gets the answer; it may be nil. If a function of
// [RaftLog.Before] calls Propose, the log commits the write at once.
func (o *Operator) Propose(m shims.Message, reply func(shims.Answer)) {
	if reply == nil {
		reply = func(shims.Answer) {}
	}
	log := o.world.Log
	if log.hookDepth == 0 {
		o.repeatIfStruck(m)
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

// repeatIfStruck repeats a drain request if a fault strikes: at once, or when the operator stops
// waiting for the answer. Both requests then have the same idempotency key.
func (o *Operator) repeatIfStruck(m shims.Message) {
	request, is := m.(*shims.NodeUpdateDrain)
	faults := o.world.Faults
	if !is || len(faults.armed) == 0 {
		return
	}
	drained := target{Words: []string{string(request.Node)}}
	delay, twice := faults.strike(scenario.APIDup, drained)
	if !twice {
		if delay, twice = faults.strike(scenario.APITimeout, drained); !twice {
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

// runOperationFaults performs the operations of the faults that strike when an entry is applied.
func (o *Operator) runOperationFaults(a shims.Applied) {
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

// retryAfter is the wait before the world sends a write again that may not have been applied.
const retryAfter = time.Second

// sendUntilApplied sends a write until it is applied. build returns nil when the write is no
// longer necessary.
func (o *Operator) sendUntilApplied(build func() shims.Message) {
	m := build()
	if m == nil {
		return
	}
	w := o.world
	again := func() { w.At(w.now.Add(retryAfter), func() error { o.sendUntilApplied(build); return nil }) }
	taken := w.Log.propose(nil, FromOperator, m, func(a shims.Answer) {
		if a.Outcome != raftwrite.Applied {
			again()
		}
	})
	if !taken {
		again()
	}
}

// change is a write that changes a node for a fault, and the write that reverts it.
type change struct {
	operator *Operator
	// apply and revert build the two writes. They return nil if there is nothing to change.
	apply, revert func() shims.Message
	// sent is the last write that apply built, or nil.
	sent shims.Message
	// reverting says that end was called.
	reverting bool
}

// start makes the change. It never fails.
func (c *change) start() error {
	c.operator.sendUntilApplied(func() shims.Message {
		if c.reverting {
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

// end reverts the change. If the last write of apply is still in the queue of the log, end waits
// for it. It never fails.
func (c *change) end() error {
	c.reverting = true
	w := c.operator.world
	if w.Log.holds(c.sent) {
		w.At(w.now.Add(retryAfter), c.end)
		return nil
	}
	c.operator.sendUntilApplied(c.revert)
	return nil
}
