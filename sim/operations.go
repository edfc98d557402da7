package sim

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// happen has events happen that happen together. The first is the scenario's event of
// that number.
func (p *player) happen(first int, events []scenario.Event) error {
	p.effects.due(first, len(events))
	all := func() error {
		for i, e := range events {
			p.effects.begin(first + i)
			if err := p.do(e.Op); err != nil {
				return fmt.Errorf("line %d: %w", e.Line, err)
			}
		}
		p.troubles -= troubles(events)
		p.begins -= begins(events)
		return nil
	}
	if kind := events[0].Before; kind != "" {
		p.world.Before(func(m shims.Message) bool { return world.EntryKindOf(m) == kind }, all)
		return nil
	}
	return all()
}

// do does one thing.
func (p *player) do(op scenario.Op) error {
	done, err := p.operator.Do(op)
	if done {
		return err
	}
	return p.doToServers(op)
}

// operates returns the operator of a world, who has noted what comes of its operations.
func operates(s *scenario.Scenario, w *world.World, e *effects) *setting.Operator {
	return &setting.Operator{
		Requests: w.Requests(), Scenario: s, NewAllocID: w.NewAllocID,
		Ask: func(m shims.Message) { w.Propose(m, e.answered()) },
		Place: func(j *cluster.Job, allocs []*cluster.Allocation) error {
			e.of().did = true
			return w.Place(j, allocs...)
		},
		Nothing: func(why string) { e.of().nothing(why) },
	}
}

// doToServers does what is done to servers and to what lies between them.
func (p *player) doToServers(op scenario.Op) error {
	w := p.world
	p.effects.of().did = true
	switch op := op.(type) {
	case *scenario.Elect:
		return w.Depose(world.Election{Next: op.Server - 1, Lost: op.Lost, Believes: op.Believes})
	case *scenario.Pause:
		w.Pause(p.server(op.Server), op.For)
	case *scenario.Clock:
		if op.Server == 0 {
			p.setClocks(op.Ahead)
		} else {
			w.SetClock(p.server(op.Server), op.Ahead)
		}
	case *scenario.Restore:
		return w.Restore()
	case *scenario.Forget:
		return w.Forget()
	case *scenario.Fault:
		armed, err := setting.Arm(*op, w.Now())
		if err != nil {
			return err
		}
		p.effects.of().armed = armed
		return w.Expose(armed)
	default:
		return fmt.Errorf("%T: there is no such operation", op)
	}
	return nil
}

// server is a server by its number from 1; zero is the leader.
func (p *player) server(number int) int {
	if number == 0 {
		return p.world.Leader()
	}
	return (number - 1) % p.world.Servers()
}

func (p *player) setClocks(ahead time.Duration) {
	for i := range p.world.Servers() {
		p.world.SetClock(i, ahead)
	}
}
