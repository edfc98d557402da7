package world

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Operator sends requests to the leader.
type Operator struct {
	world *World
	// Requests builds the messages for [Operator.Propose].
	Requests Requests
	// keys counts the idempotency keys of repeated requests.
	keys int
}

func newOperator(w *World) *Operator {
	return &Operator{world: w, Requests: Requests{w}}
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
		w.Faults.after(delay, func() error {
			if _, is := op.(*scenario.Restore); is {
				return w.Servers.Restore()
			}
			_, err := o.Do(&scenario.Scenario{}, op, ignored{})
			return err
		})
	}
}

// ignored is the effect of an operation of a fault.
type ignored struct{}

func (ignored) Answered(shims.Answer) {}
func (ignored) Found()                {}
func (ignored) Nothing(string)        {}

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
	// reverting: end was called.
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

// Effect receives the effect of an operation.
type Effect interface {
	// Answered receives the answer to a write.
	Answered(shims.Answer)
	// Found is called if the operation has an effect without a write.
	Found()
	// Nothing is called with the reason if the operation has no effect, because its subject is gone.
	Nothing(why string)
}

// Do performs an operation on nodes, jobs, allocations or volumes of a scenario. It returns false for
// operations on servers and for faults. An operation whose subject is gone has no effect; shrunk
// scenarios have such operations.
func (o *Operator) Do(s *scenario.Scenario, op scenario.Op, e Effect) (done bool, err error) {
	return operation{o, s, e}.do(op)
}

// operation is an operation of a scenario, with its effect.
type operation struct {
	*Operator
	scenario *scenario.Scenario
	effect   Effect
}

func (o operation) do(op scenario.Op) (done bool, err error) {
	switch op := op.(type) {
	case *scenario.Drain:
		o.drain(op)
	case *scenario.Cancel:
		for _, id := range op.Nodes {
			o.send(o.Requests.Cancel(id, op.Eligible, op.Undo, op.Key))
		}
	case *scenario.Confirm:
		for _, id := range op.Nodes {
			o.confirm(id)
		}
	case *scenario.PauseDrains:
		for _, id := range nodesOrAll(op.Nodes) {
			m := o.Requests.Pause(id, true)
			o.send(m)
			if op.For > 0 {
				o.resumeAfter(op.For, m)
			}
		}
	case *scenario.ResumeDrains:
		for _, id := range nodesOrAll(op.Nodes) {
			o.send(o.Requests.Pause(id, false))
		}
	case *scenario.Register:
		if j := setting.DeclaredJob(o.scenario, op.Job); j != nil {
			o.send(o.Requests.Register(j))
		} else {
			o.nothing("no job %s is declared", op.Job)
		}
	case *scenario.Edit:
		return true, o.edit(op)
	case *scenario.Stop:
		if j := o.job(op.Job); j != nil {
			o.send(o.Requests.Stop(j, op.Purge))
		}
	case *scenario.StopAlloc:
		if a := o.named(op.Alloc); a != nil {
			o.send(o.Requests.StopAlloc(a))
		}
	case *scenario.Exit:
		o.exit(op)
	case *scenario.Place:
		return true, o.place(op)
	case *scenario.NodeChange:
		for _, id := range op.Nodes {
			if err := o.change(op, id); err != nil {
				return true, err
			}
		}
	case *scenario.VolumeChange:
		o.volume(op)
	case *scenario.TargetChange:
		if o.world.clients.real == nil {
			o.nothing("simulated clients run no checks")
			return true, nil
		}
		o.effect.Found()
		return true, o.world.clients.real.setTargets(*op)
	default:
		return false, nil
	}
	return true, nil
}

func (o operation) drain(op *scenario.Drain) {
	times := 1
	if op.Twice {
		times = 2
	}
	for range times {
		for _, id := range op.Nodes {
			spec := setting.Spec(op)
			o.send(o.Requests.Drain(id, &spec, op.Key))
		}
	}
}

// nodesOrAll returns the nodes, or the empty id, which is for all drains.
func nodesOrAll(ids []cluster.NodeID) []cluster.NodeID {
	if len(ids) == 0 {
		return []cluster.NodeID{""}
	}
	return ids
}

// resumeAfter ends a pause after a time, or when the write of the pause has left the queue of the log. It repeats the
// request until no such pause is left.
func (o *Operator) resumeAfter(wait time.Duration, pause *shims.PauseDrains) {
	w := o.world
	w.At(w.now.Add(wait), func() error {
		if w.Log.holds(pause) {
			o.resumeAfter(retryAfter, pause)
			return nil
		}
		o.sendUntilApplied(func() shims.Message {
			if state := w.Truth(); pause.Node == "" && state.DrainView().DrainPause() == nil || pause.Node != "" && !hasPause(state.Node(pause.Node)) {
				return nil
			}
			return o.Requests.Pause(pause.Node, false)
		})
		return nil
	})
}

// hasPause reports whether the drain of a node has a pause of its own. The node may be nil.
func hasPause(n *cluster.Node) bool { return n.Draining() && n.Drain.Paused != nil }

// confirm confirms the newest ended drain of a node.
func (o operation) confirm(id cluster.NodeID) {
	var newest *cluster.Drain
	for d := range o.world.Truth().DrainsByNode(id) {
		newest = d
	}
	if newest == nil {
		o.nothing("no drain of %s has ended", id)
		return
	}
	o.send(&shims.ConfirmDrain{At: o.world.Clock(), Drain: newest.ID, By: "operator"})
}

// send sends a write to the leader.
func (o operation) send(m shims.Message) { o.Propose(m, o.effect.Answered) }

// nothing passes on the reason why an operation has no effect.
func (o operation) nothing(format string, args ...any) {
	o.effect.Nothing(fmt.Sprintf(format, args...))
}

// job returns the job with the key, or nil.
func (o operation) job(key cluster.JobKey) *cluster.Job {
	j := o.world.Truth().Job(key)
	if j == nil {
		o.nothing("there is no job %s", key)
	}
	return j
}

func (o operation) edit(op *scenario.Edit) error {
	j := o.job(op.Job)
	if j == nil {
		return nil
	}
	edited, err := setting.Edit(j, op)
	if err != nil {
		return err
	}
	edited.Canonicalize()
	if err := edited.Validate(); err != nil {
		o.nothing("the servers would refuse the job: %s", err)
		return nil
	}
	o.send(o.Requests.Register(edited))
	return nil
}

func (o operation) exit(op *scenario.Exit) {
	status := cluster.ClientComplete
	if op.Failed {
		status = cluster.ClientFailed
	}
	if a := o.named(op.Alloc); a != nil {
		o.send(o.Requests.Exit(a, status))
	}
}

// named returns the allocation with the name that has not ended, or nil.
func (o operation) named(name scenario.AllocName) *cluster.Allocation {
	for a := range o.world.Truth().AllocsByJob(name.Group.Job) {
		index, ok := setting.Index(a)
		if ok && a.TaskGroup == name.Group.Name && index == name.Index && !a.Terminal() && (name.Node == "" || name.Node == a.NodeID) {
			return a
		}
	}
	o.nothing("there is no such allocation")
	return nil
}

// place places allocations without the scheduler.
func (o operation) place(op *scenario.Place) error {
	j := o.world.Truth().Job(op.Alloc.Group.Job)
	if j == nil {
		j = setting.DeclaredJob(o.scenario, op.Alloc.Group.Job)
	}
	if j.Stopped() || j.Group(op.Alloc.Group.Name) == nil {
		o.nothing("group %s: its job is stopped, or has no such group", op.Alloc.Group)
		return nil
	}
	if j = j.Copy(); op.Count != nil {
		j.Group(op.Alloc.Group.Name).Count = *op.Count
	}
	o.effect.Found()
	return o.world.Setup.Place(Placement{Job: j, Allocs: setting.Allocs(op.Alloc, j, o.world.now, o.world.ids.alloc)})
}

// volume changes a volume, or detaches it.
func (o operation) volume(op *scenario.VolumeChange) {
	k := cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: op.Volume}
	switch op.Change {
	case scenario.VolumeRegister:
		if v := setting.DeclaredVolume(o.scenario, op.Volume); v != nil {
			o.send(&shims.VolumeRegister{At: o.world.Clock(), Volume: v})
		} else {
			o.nothing("no volume %s is declared", op.Volume)
		}
	case scenario.VolumeDeregister:
		o.send(&shims.VolumeDeregister{Volume: k, Force: op.Force})
	case scenario.VolumeDetach:
		o.send(&shims.VolumeDetach{At: o.world.Clock(), Volume: k, Node: op.Node, Force: op.Force})
	}
}

// change changes a node.
func (o operation) change(op *scenario.NodeChange, id cluster.NodeID) error {
	if op.Change == scenario.NodeRegister {
		n := setting.DeclaredNode(o.scenario, id)
		if n == nil {
			o.nothing("no node %s is declared", id)
			return nil
		}
		if real := o.world.clients.real; real != nil && real.node(id) != nil && (o.world.Truth().Node(id) != nil || !machine.Works(real.node(id).machine)) {
			o.nothing("the client of node %s registers the node itself", id) // another party has not its facts
			return nil
		}
		var err error
		if n.Unlisted, err = unlisted(o.world, id); err != nil {
			return err
		}
		o.send(o.Requests.RegisterNode(n))
		return nil
	}
	if o.world.Truth().Node(id) == nil {
		o.nothing("there is no node %s", id)
		return nil
	}
	switch op.Change {
	case scenario.NodeDelete:
		o.send(o.Requests.DeleteNode(id))
	case scenario.NodeEligible, scenario.NodeIneligible:
		o.send(o.Requests.Eligibility(id, cluster.Eligibility(op.Change)))
	case scenario.NodeReady:
		if o.world.clients.cannotHeartbeat(id) {
			o.nothing("no heartbeat of node %s reaches the servers, and only a heartbeat makes a node ready", id)
			return nil
		}
		fallthrough
	default:
		o.send(o.Requests.NodeStatus(id, cluster.NodeStatus(op.Change), op.Unnoticed))
	}
	return nil
}
