package setting

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Operator performs the operations of a scenario on jobs, allocations and nodes. Only Nothing may
// be nil.
type Operator struct {
	*Requests
	Scenario   *scenario.Scenario
	NewAllocID func() cluster.AllocID
	// Ask sends a write to the leader and does not wait for an answer.
	Ask func(shims.Message)
	// Place writes a job and allocations of it without the log.
	Place func(*cluster.Job, []*cluster.Allocation) error
	// Nothing is called with the reason if an operation has no effect, because its subject is gone.
	// It may be nil.
	Nothing func(why string)
}

// Do performs one operation. It returns false for operations on servers and for faults, which are
// not an operator's. An operation whose subject is gone has no effect; shrunk scenarios have such
// operations.
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
	case *scenario.VolumeChange:
		o.volume(op)
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

// nothing passes on the reason why an operation has no effect.
func (o *Operator) nothing(format string, args ...any) {
	if o.Nothing != nil {
		o.Nothing(fmt.Sprintf(format, args...))
	}
}

// job returns the job with the key, or nil.
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
		o.nothing("the servers would refuse the job: %s", err)
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

// named returns the allocation with the name that has not ended, or nil.
func (o *Operator) named(name scenario.AllocName) *cluster.Allocation {
	for a := range o.Truth().AllocsByJob(name.Group.Job) {
		index, ok := Index(a)
		if ok && a.TaskGroup == name.Group.Name && index == name.Index && !a.Terminal() && (name.Node == "" || name.Node == a.NodeID) {
			return a
		}
	}
	o.nothing("there is no such allocation")
	return nil
}

// place places allocations without the scheduler.
func (o *Operator) place(op *scenario.Place) error {
	j := o.Truth().Job(op.Alloc.Group.Job)
	if j == nil {
		j = DeclaredJob(o.Scenario, op.Alloc.Group.Job)
	}
	if j.Stopped() || j.Group(op.Alloc.Group.Name) == nil {
		o.nothing("group %s: its job is stopped, or has no such group", op.Alloc.Group)
		return nil
	}
	if j = j.Copy(); op.Count != nil {
		j.Group(op.Alloc.Group.Name).Count = *op.Count
	}
	return o.Place(j, Allocs(op.Alloc, j, o.Now(), o.NewAllocID))
}

// volume changes a volume, or detaches it.
func (o *Operator) volume(op *scenario.VolumeChange) {
	k := cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: op.Volume}
	switch op.Change {
	case scenario.VolumeRegister:
		if v := DeclaredVolume(o.Scenario, op.Volume); v != nil {
			o.Ask(&shims.VolumeRegister{At: o.Clock(), Volume: v})
		} else {
			o.nothing("no volume %s is declared", op.Volume)
		}
	case scenario.VolumeDeregister:
		o.Ask(&shims.VolumeDeregister{Volume: k, Force: op.Force})
	case scenario.VolumeDetach:
		o.Ask(&shims.VolumeDetach{At: o.Clock(), Volume: k, Node: op.Node, Force: op.Force})
	}
}

// change changes a node.
func (o *Operator) change(op *scenario.NodeChange, id cluster.NodeID) {
	if op.Change == scenario.NodeRegister {
		if n := DeclaredNode(o.Scenario, id); n != nil {
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
