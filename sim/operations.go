package sim

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// run runs events that belong together. first is the index of the first in the scenario.
func (p *player) run(first int, events []scenario.Event) error {
	p.effects.due(first, len(events))
	all := func() error {
		for i, e := range events {
			p.effects.start(first + i)
			if err := p.do(e.Op); err != nil {
				return fmt.Errorf("line %d: %w", e.Line, err)
			}
		}
		p.faultEvents -= faultEvents(events)
		p.drainEvents -= drainEvents(events)
		return nil
	}
	if kind := events[0].Before; kind != "" {
		p.world.Log.Before(func(m shims.Message) bool { return world.EntryKindOf(m) == kind }, all)
		return nil
	}
	return all()
}

// do performs an operation.
func (p *player) do(op scenario.Op) error {
	if drain, is := op.(*scenario.Drain); is {
		p.effects.current().pointless = neverPopulated(p.world.Truth(), p.scenario, drain.Nodes)
	}
	done, err := p.world.Operator.Do(p.scenario, op, p.effects.current())
	if done {
		return err
	}
	return p.doToServers(op)
}

// neverPopulated returns a reason if one of the nodes was declared eligible, has become ineligible
// without a drain, and has never had an allocation. An event at 0s comes before
// the scheduler places the jobs.
func neverPopulated(state *statestore.Snapshot, s *scenario.Scenario, nodes []cluster.NodeID) string {
	for _, id := range nodes {
		n := state.Node(id)
		if n == nil || n.Drain != nil || n.SchedulingEligibility == cluster.NodeEligible {
			continue
		}
		declared := slices.ContainsFunc(s.Nodes, func(d scenario.Node) bool { return slices.Contains(d.IDs, id) && !d.Ineligible })
		used := false
		for range state.AllocsByNode(id) {
			used = true
		}
		for d := range state.Drains() {
			used = used || d.NodeID == id
		}
		if declared && !used {
			return fmt.Sprintf("%s has never had an allocation: it became ineligible before the scheduler placed the jobs", id)
		}
	}
	return ""
}

// doToServers performs an operation on servers, or arms a fault.
func (p *player) doToServers(op scenario.Op) error {
	w := p.world
	p.effects.current().found = true
	switch op := op.(type) {
	case *scenario.Elect:
		return w.Servers.Depose(world.Election{Next: op.Server - 1, Lost: op.Lost, Unaware: op.Unaware})
	case *scenario.Pause:
		w.Servers.Pause(p.server(op.Server), op.For)
	case *scenario.Clock:
		if op.Server > 0 {
			w.Servers.SetClock(p.server(op.Server), op.Ahead)
			return nil
		}
		for i := range w.Servers.Count() {
			w.Servers.SetClock(i, op.Ahead)
		}
	case *scenario.Restore:
		return w.Servers.Restore()
	case *scenario.Forget:
		return w.Servers.Forget()
	case *scenario.Fault:
		armed, err := setting.Arm(*op, w.Now())
		if err != nil {
			return err
		}
		p.effects.current().armed = armed
		return w.Faults.Add(armed)
	default:
		return fmt.Errorf("%T: there is no such operation", op)
	}
	return nil
}

// server converts a server's number from 1 into one from 0. Zero is the leader.
func (p *player) server(number int) int {
	if number == 0 {
		return p.world.Leader()
	}
	return (number - 1) % p.world.Servers.Count()
}
