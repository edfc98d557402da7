package setting

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Operator does what a scenario says is done to jobs, allocations and nodes. No field may
// be nil but Nothing.
type Operator struct {
	*Requests
	Scenario   *scenario.Scenario
	NewAllocID func() cluster.AllocID
	// Ask asks whoever leads for a write, and does not wait for an answer.
	Ask func(shims.Message)
	// Place has allocations of a job land on their nodes, and the job be as it is there:
	// what no message could.
	Place func(*cluster.Job, []*cluster.Allocation) error
	// Nothing is told why there is nothing to be asked for: what an operation is about is
	// gone. Or nil, when nobody wants to know.
	Nothing func(why string)
}

// Do does one thing, and reports whether it is one that operators do: not what is done to
// servers, nor a fault. What cannot be done because what it is about is gone is not done:
// an operator would be told so, and a shrunk scenario has such things.
func (o *Operator) Do(op scenario.Op) (done bool, err error) {
	switch op := op.(type) {
	case *scenario.Drain:
		o.drain(op)
	case *scenario.Cancel:
		for _, id := range op.Nodes {
			o.Ask(o.Cancel(id, op.Eligible, op.Key))
		}
	case *scenario.Register:
		if j := DeclaredJob(o.Scenario, op.Job); j != nil {
			o.Ask(o.Register(j))
		} else {
			o.nothing("no job %s is declared", op.Job)
		}
	case *scenario.Edit:
		return true, o.edit(op)
	case *scenario.Stop:
		if j := o.job(op.Job); j != nil {
			o.Ask(o.Stop(j, op.Purge))
		}
	case *scenario.StopAlloc:
		if a := o.named(op.Alloc); a != nil {
			o.Ask(o.StopAlloc(a))
		}
	case *scenario.Exit:
		o.exit(op)
	case *scenario.Place:
		return true, o.place(op)
	case *scenario.NodeChange:
		for _, id := range op.Nodes {
			o.change(op, id)
		}
	default:
		return false, nil
	}
	return true, nil
}

func (o *Operator) drain(op *scenario.Drain) {
	times := 1
	if op.Twice {
		times = 2
	}
	for range times {
		for _, id := range op.Nodes {
			spec := Spec(op)
			o.Ask(o.Drain(id, &spec, op.Key))
		}
	}
}

// nothing says why there is nothing to be asked for.
func (o *Operator) nothing(format string, args ...any) {
	if o.Nothing != nil {
		o.Nothing(fmt.Sprintf(format, args...))
	}
}

// job is the job of a key, or nil if there is none.
func (o *Operator) job(key cluster.JobKey) *cluster.Job {
	j := o.Truth().Job(key)
	if j == nil {
		o.nothing("there is no job %s", key)
	}
	return j
}

func (o *Operator) edit(op *scenario.Edit) error {
	j := o.job(op.Job)
	if j == nil {
		return nil
	}
	edited, err := Edit(j, op)
	if err != nil {
		return err
	}
	edited.Canonicalize()
	if err := edited.Validate(); err != nil {
		o.nothing("nobody would take it: %s", err)
		return nil
	}
	o.Ask(o.Register(edited))
	return nil
}

func (o *Operator) exit(op *scenario.Exit) {
	status := cluster.ClientComplete
	if op.Failed {
		status = cluster.ClientFailed
	}
	if a := o.named(op.Alloc); a != nil {
		o.Ask(o.Exit(a, status))
	}
}

// named is the allocation of a name that has not ended, or nil.
func (o *Operator) named(name scenario.AllocName) *cluster.Allocation {
	for a := range o.Truth().AllocsByJob(name.Group.Job) {
		index, ok := Index(a)
		if ok && a.TaskGroup == name.Group.Name && index == name.Index && !a.Terminal() && (name.Node == "" || name.Node == a.NodeID) {
			return a
		}
	}
	o.nothing("no such allocation runs")
	return nil
}

// place has allocations land on nodes whatever a scheduler would say.
func (o *Operator) place(op *scenario.Place) error {
	j := o.Truth().Job(op.Alloc.Group.Job)
	if j == nil {
		j = DeclaredJob(o.Scenario, op.Alloc.Group.Job)
	}
	if j.Stopped() || j.Group(op.Alloc.Group.Name) == nil {
		o.nothing("%s is not to run, or has no such group", op.Alloc.Group)
		return nil
	}
	if j = j.Copy(); op.Count != nil {
		j.Group(op.Alloc.Group.Name).Count = *op.Count
	}
	return o.Place(j, Allocs(op.Alloc, j, o.Now(), o.NewAllocID))
}

// change has become of a node what the operation says.
func (o *Operator) change(op *scenario.NodeChange, id cluster.NodeID) {
	if op.Change == scenario.NodeRegister {
		if n := Declared(o.Scenario, id); n != nil {
			o.Ask(o.RegisterNode(n))
		} else {
			o.nothing("no node %s is declared", id)
		}
		return
	}
	if o.Truth().Node(id) == nil {
		o.nothing("there is no node %s", id)
		return
	}
	switch op.Change {
	case scenario.NodeDelete:
		o.Ask(o.DeleteNode(id))
	case scenario.NodeEligible, scenario.NodeIneligible:
		o.Ask(o.Eligibility(id, cluster.Eligibility(op.Change)))
	default:
		o.Ask(o.NodeStatus(id, cluster.NodeStatus(op.Change), op.Unnoticed))
	}
}
