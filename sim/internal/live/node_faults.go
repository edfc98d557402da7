package live

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// heartbeat is how long the servers wait for a silent client before they set the status of its
// node to down or disconnected.
const heartbeat = 10 * time.Second

// loseNode makes a node's client silent for the delay of the fault. If the delay is longer than
// the heartbeat, the servers change the node's status.
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
			if lasts() && o.servers.newestState().Node(id) != nil {
				o.ask(o.requests.NodeStatus(id, status, false))
			}
		})
	}
	o.undoLater(away, func() { o.returnNode(id) })
}

// returnNode ends the outage of a node's client, and sets the node's status to ready.
func (o *operator) returnNode(id cluster.NodeID) {
	o.clients.endSilence(id)
	if n := o.servers.newestState().Node(id); n != nil && !n.Reachable() {
		o.ask(o.requests.NodeStatus(id, cluster.NodeReady, false))
	}
}

// nodeFor returns the node of a fault, or a random reachable node if the fault names none.
func (o *operator) nodeFor(f *scenario.Fault) (id cluster.NodeID, found bool) {
	var nodes []cluster.NodeID
	for n := range o.servers.newestState().Nodes() {
		if !o.clients.isSilent(n.ID) && (f.On == "" && n.Reachable() || cluster.NodeID(f.On) == n.ID) {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return "", false
	}
	return nodes[o.random.below("fault/"+string(f.Name), len(nodes))], true
}

// makeAllIneligible makes all nodes ineligible for the delay of the fault, so that the scheduler
// can place nothing.
func (o *operator) makeAllIneligible(f *scenario.Fault) {
	var nodes []cluster.NodeID
	for n := range o.servers.newestState().Nodes() {
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
			if n := o.servers.newestState().Node(id); n != nil && !n.Draining() {
				o.ask(o.requests.Eligibility(id, cluster.NodeEligible))
			}
		}
	})
}

// undo ends the effect of a fault.
type undo struct{ do func() }

// undoLater ends an effect after a delay, or when all faults end.
func (o *operator) undoLater(d time.Duration, do func()) {
	u := &undo{do}
	o.undos = append(o.undos, u)
	o.later(d, func() { o.undo(u) })
}

// undo ends an effect, once.
func (o *operator) undo(u *undo) {
	if i := slices.Index(o.undos, u); i >= 0 {
		o.undos = slices.Delete(o.undos, i, i+1)
		u.do()
	}
}

// endFaults ends all faults and their effects. It cuts off forever the servers and nodes that the
// scenario names.
func (o *operator) endFaults() error {
	o.faults.disarm()
	o.servers.cutOff(o.scenario.Run.CutServers)
	for len(o.undos) > 0 {
		o.undo(o.undos[0])
	}
	for _, id := range o.scenario.Run.CutNodes {
		o.clients.silence(id)
		o.later(heartbeat, func() {
			if n := o.servers.newestState().Node(id); n != nil && n.Reachable() {
				o.ask(o.requests.NodeStatus(id, cluster.NodeDown, false))
			}
		})
	}
	return nil
}
