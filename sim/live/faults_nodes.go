package live

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// heartbeat is how long the servers wait for a client before they say that its node is
// down, or disconnected.
const heartbeat = 10 * time.Second

// loseNode has a node's client fall silent, and return after the fault's delay.
// Between, the servers find out and say so.
func (o *operator) loseNode(f *scenario.Fault) {
	id, found := o.nodeFor(f)
	if !found {
		return
	}
	away, strikes := o.faults.strike(f.Name, target{Words: []string{string(id)}})
	if !strikes {
		return
	}
	status := cluster.NodeDown
	if f.Name == scenario.NodeDisconnect {
		status = cluster.NodeDisconnected
	}
	lasts := o.clients.silence(id)
	if away > heartbeat {
		o.later(heartbeat, func() {
			if lasts() && o.servers.truth().Node(id) != nil {
				o.ask(o.requests.NodeStatus(id, status, false))
			}
		})
	}
	o.undoLater(away, func() { o.returnNode(id) })
}

// returnNode has a node's client speak again.
func (o *operator) returnNode(id cluster.NodeID) {
	o.clients.speak(id)
	if n := o.servers.truth().Node(id); n != nil && !n.Reachable() {
		o.ask(o.requests.NodeStatus(id, cluster.NodeReady, false))
	}
}

// nodeFor is the node a fault is on, or one that is drawn from those in touch.
func (o *operator) nodeFor(f *scenario.Fault) (id cluster.NodeID, found bool) {
	var nodes []cluster.NodeID
	for n := range o.servers.truth().Nodes() {
		if !o.clients.isSilent(n.ID) && (f.On == "" && n.Reachable() || cluster.NodeID(f.On) == n.ID) {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return "", false
	}
	return nodes[o.chance.pick("fault/"+string(f.Name), len(nodes))], true
}

// cordon has nothing placed anywhere for a while.
func (o *operator) cordon(f *scenario.Fault) {
	var nodes []cluster.NodeID
	for n := range o.servers.truth().Nodes() {
		if n.SchedulingEligibility == cluster.NodeEligible {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return
	}
	lasts, strikes := o.faults.strike(f.Name, target{})
	if !strikes {
		return
	}
	for _, id := range nodes {
		o.ask(o.requests.Eligibility(id, cluster.NodeIneligible))
	}
	o.undoLater(lasts, func() {
		for _, id := range nodes {
			if n := o.servers.truth().Node(id); n != nil && !n.Draining() {
				o.ask(o.requests.Eligibility(id, cluster.NodeEligible))
			}
		}
	})
}

// undo is how the effect of a fault ends.
type undo struct{ do func() }

// undoLater has something undone after a while, or when the faults end if that is
// sooner.
func (o *operator) undoLater(d time.Duration, do func()) {
	u := &undo{do}
	o.undos = append(o.undos, u)
	o.later(d, func() { o.undo(u) })
}

// undo undoes something, once.
func (o *operator) undo(u *undo) {
	if i := slices.Index(o.undos, u); i >= 0 {
		o.undos = slices.Delete(o.undos, i, i+1)
		u.do()
	}
}

// calm ends all faults: those that are armed, and what has been done and can be undone;
// but for the servers and the nodes that are cut off.
func (o *operator) calm() error {
	o.faults.disarm()
	if err := o.servers.calm(o.scenario.Run.CutServers); err != nil {
		return err
	}
	for len(o.undos) > 0 {
		o.undo(o.undos[0])
	}
	for _, id := range o.scenario.Run.CutNodes {
		o.clients.silence(id)
		o.later(heartbeat, func() {
			if n := o.servers.truth().Node(id); n != nil && n.Reachable() {
				o.ask(o.requests.NodeStatus(id, cluster.NodeDown, false))
			}
		})
	}
	return nil
}
