package world

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// attachment is a volume that a controller has attached to a node.
type attachment struct {
	Volume cluster.VolumeKey
	Node   cluster.NodeID
}

// controllers are the controllers of all storage plugins, and their attachments. Only controllers
// change the attachments.
type controllers struct {
	world    *World
	attached map[attachment]bool
	// flying are the calls in flight of each volume.
	flying map[cluster.VolumeKey]int
}

func newControllers(w *World) *controllers {
	return &controllers{world: w, attached: map[attachment]bool{}, flying: map[cluster.VolumeKey]int{}}
}

// Attached reports whether a controller has attached the volume to the node.
func (w *World) Attached(k cluster.VolumeKey, id cluster.NodeID) bool {
	return w.controllers.attached[attachment{k, id}]
}

// Attach attaches the volumes of existing allocations.
func (s Setup) Attach() error {
	u := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: s.world.now}}
	for c := range s.world.Truth().Claims() {
		if c.WaitsForController() {
			s.world.controllers.attached[attachment{c.Volume, c.Node}] = true
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

var errNoSession = errors.New("simulated: no controller answers")

// begin makes a call over the session of the controller's node. The answer is dropped after the end
// of the actor's term, but the call may still take effect then.
func (c *controllers) begin(a *volumesActor, call *volumes.Call, on cluster.NodeID) {
	w := c.world
	volume := call.Volume.Key()
	c.flying[volume]++
	var failure error
	w.At(w.now.Add(w.chance.draw("controllers", controllerTime())), func() error {
		c.flying[volume]--
		acts, answers := c.fate(call.Volume.Plugin, on)
		if acts {
			c.act(call)
		}
		if !answers {
			failure = errNoSession
		}
		if a.deposed {
			return nil
		}
		if failure != nil {
			a.caller.Failed(call, a.clock(), failure)
			return nil
		}
		a.update(call.Changes(published(call.Node)), func(err error) {
			if a.deposed {
				return
			}
			if err != nil {
				a.caller.Failed(call, a.clock(), err)
			} else {
				a.caller.Succeeded(call)
			}
		})
		return nil
	})
}

// fate says whether a controller on the node executes a call, and whether its answer arrives.
func (c *controllers) fate(id cluster.PluginID, on cluster.NodeID) (acts, answers bool) {
	n := c.world.clients.real.node(on)
	if n == nil || !n.reachable() || !n.machine.Running() || !n.serves(id, cluster.PluginType.Controller) {
		return false, false
	}
	if _, strikes := c.world.Faults.strike(scenario.StorageFail, n.target()); strikes {
		return c.world.chance.stream("controllers/fail").IntN(2) == 1, false
	}
	return true, true
}

// act attaches or detaches a volume.
func (c *controllers) act(call *volumes.Call) {
	at := attachment{call.Volume.Key(), call.Node}
	if call.Detach {
		delete(c.attached, at)
		return
	}
	c.attached[at] = true
}
