package live

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// operator does what a scenario says is done, at its times. All that it does is done
// one after the other, by [servers].do.
type operator struct {
	*player
	stop, stopped chan struct{}
	// undos are what is to be undone when the faults end.
	undos []*undo
}

// run has everything happen at its time, on a goroutine of its own. What happens at one
// time happens in the order of the file, and calm comes last.
func (o *operator) run() {
	defer close(o.stopped)
	events := slices.Clone(o.scenario.Events)
	slices.SortStableFunc(events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	calm := o.scenario.Run.Calm
	for i := 0; i < len(events); {
		batch := events[i : i+together(events[i:])]
		i += len(batch)
		if calm > 0 && calm < batch[0].At {
			o.at(calm, func() error { o.calm(); return nil })
			calm = 0
		}
		if !o.at(batch[0].At, func() error { return o.happen(batch) }) {
			return
		}
	}
	if calm > 0 {
		o.at(calm, func() error { o.calm(); return nil })
	}
}

// together is how many of the events, from the first on, come before one entry.
func together(events []scenario.Event) int {
	n := 1
	for events[0].Before != "" && n < len(events) && events[n].At == events[0].At && events[n].Before == events[0].Before {
		n++
	}
	return n
}

// at waits for a time and has something done then. It returns false if the play ends
// before.
func (o *operator) at(at time.Duration, do func() error) bool {
	select {
	case <-o.stop:
		return false
	case <-time.After(time.Until(o.began.Add(at))):
		o.servers.do(do)
		return true
	}
}

// later has something done after a while.
func (o *operator) later(d time.Duration, do func()) {
	time.AfterFunc(d, func() { o.servers.do(func() error { do(); return nil }) })
}

// happen has events happen that happen together.
func (o *operator) happen(events []scenario.Event) error {
	all := func() error {
		for _, e := range events {
			if err := o.do(e.Op); err != nil {
				return fmt.Errorf("line %d: %w", e.Line, err)
			}
		}
		return nil
	}
	if kind := events[0].Before; kind != "" {
		return o.servers.before(kind, all)
	}
	return all()
}

// do does one thing. What cannot be done because what it is about is gone is not done.
func (o *operator) do(op scenario.Op) error {
	state := o.servers.truth()
	switch op := op.(type) {
	case *scenario.Drain:
		o.drain(op)
	case *scenario.Cancel:
		for _, id := range op.Nodes {
			o.cancel(id, op.Eligible, op.Key)
		}
	case *scenario.Register:
		if j := setting.DeclaredJob(o.scenario, op.Job); j != nil {
			o.register(j)
		}
	case *scenario.Edit:
		return o.edit(op)
	case *scenario.Stop:
		if j := state.Job(op.Job); j != nil {
			o.stopJob(j, op.Purge)
		}
	case *scenario.StopAlloc:
		o.withAlloc(op.Alloc, o.stopAlloc)
	case *scenario.Exit:
		status := cluster.ClientComplete
		if op.Failed {
			status = cluster.ClientFailed
		}
		o.withAlloc(op.Alloc, func(a *cluster.Allocation) { o.ask(o.exit(a, status)) })
	case *scenario.Place:
		return o.place(op)
	case *scenario.NodeChange:
		o.change(op)
	case *scenario.Fault:
		return o.arm(op)
	default:
		return o.doToServers(op)
	}
	return nil
}

func (o *operator) doToServers(op scenario.Op) error {
	switch op := op.(type) {
	case *scenario.Elect:
		return o.servers.depose(world.Election{Next: op.Server - 1, Lost: op.Lost, Believes: op.Believes})
	case *scenario.Pause:
		return o.servers.pause(op.Server, op.For)
	case *scenario.Restore:
		return o.servers.restore()
	case *scenario.Forget:
		return o.servers.forget()
	}
	return fmt.Errorf("%T cannot be done live", op)
}

// arm arms a fault. Those of nodes strike at once.
func (o *operator) arm(f *scenario.Fault) error {
	if err := o.faults.arm(*f); err != nil {
		return err
	}
	switch f.Name {
	case scenario.NodeCrash, scenario.NodeDisconnect:
		o.loseNode(f)
	case scenario.SchedUnplaceable:
		o.cordon(f)
	case scenario.LeaderFlap:
		return o.servers.flap()
	}
	return nil
}

func (o *operator) drain(op *scenario.Drain) {
	times := 1
	if op.Twice {
		times = 2
	}
	for range times {
		for _, id := range op.Nodes {
			spec := setting.Spec(op)
			o.ask(o.drainRequest(id, &spec, op.Key))
		}
	}
}

func (o *operator) edit(op *scenario.Edit) error {
	j := o.servers.truth().Job(op.Job)
	if j == nil {
		return nil
	}
	edited, err := setting.Edit(j, op)
	if err != nil {
		return err
	}
	if edited.Canonicalize(); edited.Validate() == nil {
		o.register(edited)
	}
	return nil
}

// withAlloc does something to the allocation of a name that has not ended.
func (o *operator) withAlloc(name scenario.AllocName, do func(*cluster.Allocation)) {
	for a := range o.servers.truth().AllocsByJob(name.Group.Job) {
		index, ok := setting.Index(a)
		if ok && a.TaskGroup == name.Group.Name && index == name.Index && !a.Terminal() && (name.Node == "" || name.Node == a.NodeID) {
			do(a)
			return
		}
	}
}

// place has allocations land on nodes whatever a scheduler would say.
func (o *operator) place(op *scenario.Place) error {
	j := o.servers.truth().Job(op.Alloc.Group.Job)
	if j == nil {
		j = setting.DeclaredJob(o.scenario, op.Alloc.Group.Job)
	}
	if j = j.Copy(); j == nil || j.Stop || j.Group(op.Alloc.Group.Name) == nil {
		return nil
	}
	if op.Count != nil {
		j.Group(op.Alloc.Group.Name).Count = *op.Count
	}
	now := time.Now()
	landed := stake{job: j, allocs: setting.Allocs(op.Alloc, j, now, o.ids.alloc)}
	return o.servers.place(func(txn *statestore.Txn) error { return landed.place(txn, now) })
}

func (o *operator) change(op *scenario.NodeChange) {
	for _, id := range op.Nodes {
		known := o.servers.truth().Node(id) != nil
		switch op.Change {
		case scenario.NodeRegister:
			if n := setting.Declared(o.scenario, id); n != nil {
				o.ask(&shims.NodeRegister{At: time.Now(), Node: n, Evals: o.nodeEvals(id)})
			}
		case scenario.NodeDelete:
			if known {
				o.ask(&shims.NodeDeregister{At: time.Now(), Nodes: []cluster.NodeID{id}, Evals: o.nodeEvals(id)})
			}
		case scenario.NodeEligible, scenario.NodeIneligible:
			if known {
				o.setEligibility(id, cluster.Eligibility(op.Change))
			}
		default:
			if known {
				o.setStatus(id, cluster.NodeStatus(op.Change), op.Unnoticed)
			}
		}
	}
}
