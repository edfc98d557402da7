package world

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// site is a volume on a node.
type site struct {
	Volume cluster.VolumeKey
	Node   cluster.NodeID
}

// controllers are the controllers of all storage plugins, and their attachments. Only controllers
// change the attachments.
type controllers struct {
	world *World
	// attached and astray are the fields of [Attachment].
	attached, astray map[site]bool
	// flights are the calls that may still take effect, or whose leader waits for the answer.
	flights []*flight
}

// Attachment describes whether a volume is attached to a node.
type Attachment struct {
	Volume   cluster.VolumeKey
	Node     cluster.NodeID
	Attached bool
	// Astray: a call has taken effect after the opposite call, and the leader of the opposite call
	// could not prevent it: it was a call of an earlier leader, or its controller could no longer
	// be called. The next call for the site ends this.
	Astray bool
}

// ControllerCall is a call of a leader to a controller.
type ControllerCall struct {
	Term   int
	Volume cluster.VolumeKey
	Node   cluster.NodeID
	Detach bool
	// On is the node of the controller. Completes: the leader writes that the call is done if it
	// succeeds.
	On        cluster.NodeID
	Completes bool
	// Waits: the leader waits for the answer.
	Waits bool
	// Reachable: it is a call of the present leader, which can call the controller again.
	Reachable bool
}

// flight is a call with its progress.
type flight struct {
	ControllerCall
	actor   *volumesActor
	attempt volumes.Attempt
	// process is the process of the controller. It is not set before the call arrives there.
	process scripted.Identity
	// landed: the call can no longer take effect.
	landed bool
	// overtaken: if the call takes effect, the site is astray.
	overtaken bool
}

func (f *flight) site() site { return site{f.Volume, f.Node} }

// undoes reports whether the call undoes the other one.
func (f *flight) undoes(o *flight) bool { return f.site() == o.site() && f.Detach != o.Detach }

func newControllers(w *World) *controllers {
	return &controllers{world: w, attached: map[site]bool{}, astray: map[site]bool{}}
}

// Attachments returns the places to which controllers have ever attached volumes, by volume and
// node.
func (w *World) Attachments() []Attachment {
	c := w.controllers
	var all []Attachment
	for at, attached := range c.attached {
		all = append(all, Attachment{at.Volume, at.Node, attached, c.astray[at]})
	}
	slices.SortFunc(all, func(a, b Attachment) int { return cmp.Or(a.Volume.Compare(b.Volume), cmp.Compare(a.Node, b.Node)) })
	return all
}

// Attach attaches the volumes of existing allocations.
func (s Setup) Attach() error {
	u := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: s.world.now}}
	for c := range s.world.Truth().WorkView().Claims() {
		if c.WaitsForController() {
			s.world.controllers.attached[site{c.Volume, c.Node}] = true
			u.Changes = append(u.Changes, cluster.ClaimChange{Claim: c.Key(), Node: c.Node, Cause: cluster.CauseAttached, PublishContext: published(c.Node)})
		}
	}
	if len(u.Changes) == 0 {
		return nil
	}
	return s.Commit(u)
}

// published is the answer of a controller that has attached a volume to a node.
func published(id cluster.NodeID) map[string]string { return map[string]string{"node": string(id)} }

// controllerTime is how long a controller needs for a call.
func controllerTime() scenario.Range {
	return scenario.Range{Min: 20 * time.Millisecond, Max: 2 * time.Second}
}

// Errors of calls that are not done.
var (
	errNoSession = errors.New("simulated: no controller answers")
	errAborted   = errors.New("simulated: the controller executes another call for the volume")
)

// begin makes a call over the session of the controller's node. The answer is dropped after the end
// of the actor's term, but the call may still take effect then.
func (c *controllers) begin(a *volumesActor, attempt volumes.Attempt) {
	w := c.world
	f := &flight{actor: a, attempt: attempt, ControllerCall: ControllerCall{
		Term: a.term, Volume: attempt.Volume.Key(), Node: attempt.Node, Detach: attempt.Detach,
		On: attempt.Controller, Completes: attempt.Completes, Waits: true,
	}}
	c.called(f)
	c.flights = append(c.flights, f)
	begun := w.now
	w.At(begun.Add(w.chance.draw("controllers", controllerTime())), func() error { return c.arrive(f, begun) })
}

// landWithProcesses lands the calls that have ended with their processes.
func (c *controllers) landWithProcesses() {
	for _, f := range slices.Clone(c.flights) {
		n := c.world.clients.real.node(f.On)
		if n == nil || f.process == (scripted.Identity{}) {
			continue
		}
		if p, _ := n.machine.Machine().Process(f.process); p.Ended {
			c.land(f)
		}
	}
}

// called passes a new call to the observers.
func (c *controllers) called(f *flight) {
	c.landWithProcesses()
	var open []ControllerCall
	for _, o := range c.flights {
		o.Waits = o.Waits && !o.actor.deposed
		o.Reachable = o.actor == f.actor && slices.Contains(f.attempt.Controllers, o.On)
		o.overtaken = o.overtaken || f.undoes(o) && !o.Reachable
		open = append(open, o.ControllerCall)
	}
	c.world.observer.Called(f.ControllerCall, open)
}

// arrive begins to execute a call on the controller's node.
func (c *controllers) arrive(f *flight, begun time.Time) error {
	w, n := c.world, c.world.clients.real.node(f.On)
	if n == nil || !n.reachable() || !machine.Works(n.machine) || !n.executes(f) {
		return c.end(f, errNoSession)
	}
	for _, o := range c.flights {
		switch {
		case o == f || o.landed || o.On != f.On || o.Volume != f.Volume:
		case o.process == f.process:
			return c.end(f, errAborted)
		case f.undoes(o): // the process is not the one that the leader has called
			o.overtaken = true
		}
	}
	if _, strikes := w.Faults.strike(scenario.StorageFail, n.target()); strikes {
		if w.chance.stream("controllers/fail").IntN(2) == 1 {
			c.act(f)
		}
		return c.end(f, errNoSession)
	}
	if delay, strikes := w.Faults.strike(scenario.ControllerMute, n.target()); strikes {
		c.act(f)
		c.hang(f, begun, delay, func() error { return c.end(f, nil) })
		return nil
	}
	if delay, strikes := w.Faults.strike(scenario.ControllerHang, n.target()); strikes {
		c.hang(f, begun, delay, func() error {
			if p, _ := n.machine.Machine().Process(f.process); p.Ended { // and the call has ended with it
				c.land(f)
				return nil
			}
			c.act(f)
			return c.end(f, nil)
		})
		return nil
	}
	c.act(f)
	return c.end(f, nil)
}

// executes sets the process of a call: a task on the machine that runs a controller of the plugin.
func (n *coreNode) executes(f *flight) bool {
	for p := range n.machine.Machine().EachLiving() {
		if s := n.machine.Volumes().Plugin(p.Task); p.Kind == scripted.TaskProcess && s != nil && s.ID == f.attempt.Volume.Plugin && s.Type.Controller() {
			f.process = p.Identity
			return true
		}
	}
	return false
}

// hang continues with a call after a delay. Meanwhile its leader stops waiting.
func (c *controllers) hang(f *flight, begun time.Time, delay time.Duration, then func() error) {
	c.world.At(begun.Add(volumes.CallTimeout), func() error {
		c.answer(f, volumes.ErrNoAnswer)
		return nil
	})
	c.world.Faults.undoAfter(delay, then)
}

// cut ends the session of a node, and with it the calls that its leader waits for. The controllers
// may still execute them.
func (c *controllers) cut(id cluster.NodeID) {
	for _, f := range slices.Clone(c.flights) {
		if f.On == id && f.process != (scripted.Identity{}) {
			c.answer(f, volumes.ErrNoAnswer)
		}
	}
}

// act attaches or detaches the volume of a call.
func (c *controllers) act(f *flight) {
	c.attached[f.site()], c.astray[f.site()] = !f.Detach, f.overtaken
	c.land(f)
}

func (c *controllers) land(f *flight) {
	f.landed = true
	c.clean()
}

// end answers a call that can no longer take effect.
func (c *controllers) end(f *flight, err error) error {
	c.land(f)
	c.answer(f, err)
	return nil
}

// answer passes the answer to the leader, if it waits for one.
func (c *controllers) answer(f *flight, err error) {
	a, waited := f.actor, f.Waits
	f.Waits = false
	c.clean()
	switch {
	case a.deposed || !waited:
	case err != nil:
		a.caller.Failed(f.attempt, a.clock(), err)
	case !f.Completes:
		a.caller.Succeeded(f.attempt)
	default:
		a.update(f.attempt.Changes(published(f.Node)), func(err error) {
			if a.deposed {
				return
			}
			if err != nil {
				a.caller.Failed(f.attempt, a.clock(), err)
			} else {
				a.caller.Succeeded(f.attempt)
			}
		})
	}
}

// clean removes calls that have ended.
func (c *controllers) clean() {
	c.flights = slices.DeleteFunc(c.flights, func(f *flight) bool { return f.landed && !f.Waits })
}
