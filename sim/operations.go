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

// happen has events happen that happen together.
func (p *player) happen(events []scenario.Event) error {
	all := func() error {
		for _, e := range events {
			if err := p.do(e.Op); err != nil {
				return fmt.Errorf("line %d: %w", e.Line, err)
			}
		}
		return nil
	}
	if kind := events[0].Before; kind != "" {
		p.world.Before(func(m shims.Message) bool { return world.EntryKindOf(m) == kind }, all)
		return nil
	}
	return all()
}

// do does one thing. What cannot be done because what it is about is gone is not
// done: an operator would be told so, and a shrunk scenario has such things.
func (p *player) do(op scenario.Op) error {
	w := p.world
	switch op := op.(type) {
	case *scenario.Drain:
		p.drain(op)
	case *scenario.Cancel:
		for _, id := range op.Nodes {
			w.CancelDrain(id, op.Eligible, op.Key)
		}
	case *scenario.Register:
		if j := setting.DeclaredJob(p.scenario, op.Job); j != nil {
			w.RegisterJob(j)
		}
	case *scenario.Edit:
		return p.edit(op)
	case *scenario.Stop:
		if w.Truth().Job(op.Job) != nil {
			return w.StopJob(op.Job, op.Purge)
		}
	case *scenario.StopAlloc:
		p.withAlloc(op.Alloc, w.StopAlloc)
	case *scenario.Exit:
		if op.Failed {
			p.withAlloc(op.Alloc, w.FailAlloc)
		} else {
			p.withAlloc(op.Alloc, w.FinishAlloc)
		}
	case *scenario.Place:
		return p.place(op)
	case *scenario.NodeChange:
		p.change(op)
	default:
		return p.doToServers(op)
	}
	return nil
}

func (p *player) drain(op *scenario.Drain) {
	for range 1 + map[bool]int{true: 1}[op.Twice] {
		for _, id := range op.Nodes {
			p.world.Drain(id, setting.Spec(op), op.Key)
		}
	}
}

func (p *player) edit(op *scenario.Edit) error {
	j := p.world.Truth().Job(op.Job)
	if j == nil {
		return nil
	}
	edited, err := setting.Edit(j, op)
	if err != nil {
		return err
	}
	if edited.Canonicalize(); edited.Validate() == nil {
		p.world.RegisterJob(edited)
	}
	return nil
}

// withAlloc does something to the allocation of a name that has not ended.
func (p *player) withAlloc(name scenario.AllocName, do func(*cluster.Allocation)) {
	for a := range p.world.Truth().AllocsByJob(name.Group.Job) {
		index, ok := setting.Index(a)
		if ok && a.TaskGroup == name.Group.Name && index == name.Index && !a.Terminal() && (name.Node == "" || name.Node == a.NodeID) {
			do(a)
			return
		}
	}
}

// place has allocations land on nodes whatever a scheduler would say.
func (p *player) place(op *scenario.Place) error {
	w := p.world
	j := w.Truth().Job(op.Alloc.Group.Job)
	if j == nil {
		j = setting.DeclaredJob(p.scenario, op.Alloc.Group.Job)
	}
	if j.Stopped() || j.Group(op.Alloc.Group.Name) == nil {
		return nil
	}
	if j = j.Copy(); op.Count != nil {
		j.Group(op.Alloc.Group.Name).Count = *op.Count
	}
	return w.Place(j, setting.Allocs(op.Alloc, j, w.Now(), w.NewAllocID)...)
}

func (p *player) change(op *scenario.NodeChange) {
	w := p.world
	for _, id := range op.Nodes {
		known := w.Truth().Node(id) != nil
		switch op.Change {
		case scenario.NodeRegister:
			if n := setting.Declared(p.scenario, id); n != nil {
				w.RegisterNode(n)
			}
		case scenario.NodeDelete:
			if known {
				w.DeleteNode(id)
			}
		case scenario.NodeEligible, scenario.NodeIneligible:
			if known {
				w.SetEligibility(id, cluster.Eligibility(op.Change))
			}
		default:
			if known {
				w.SetNodeStatus(id, cluster.NodeStatus(op.Change), op.Unnoticed)
			}
		}
	}
}

// doToServers does what is done to servers and to what lies between them.
func (p *player) doToServers(op scenario.Op) error {
	w := p.world
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
		return w.Arm(*op)
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
