package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// heartbeat is how long the servers wait for a silent client before they write the status of its
// node. The FSM decides between disconnected and down, as it does for the real servers.
const heartbeat = 10 * time.Second

// outage is a node whose client sends and receives nothing.
type outage struct {
	// status makes the node disconnected or down, and later ready again.
	status *change
	// permanent: the client never returns.
	permanent bool
}

// startOutage makes the client of a node silent for the fault's delay. If the delay is longer
// than a heartbeat, the servers change the node's status.
func (f *fleet) startOutage(by *fault) {
	w := f.world
	id, found := f.pickNode(by)
	if !found || !w.Faults.drawStrike(by, target{}) {
		return
	}
	away := w.Faults.recordStrike(by, target{Words: []string{string(id)}})
	o := f.silence(id)
	if f.real != nil {
		f.real.fails(id, by.Name)
	}
	if away > heartbeat {
		w.At(w.now.Add(heartbeat), o.status.start)
	}
	w.Faults.undoAfter(away, func() error { return f.endOutage(id, o) })
}

// pickNode returns the node of a fault, or a random reachable node if the fault names none.
func (f *fleet) pickNode(by *fault) (id cluster.NodeID, found bool) {
	var nodes []cluster.NodeID
	for n := range f.world.Truth().Nodes() {
		if f.silent[n.ID] == nil && (by.On == "" && n.Reachable() || cluster.NodeID(by.On) == n.ID) {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return "", false
	}
	return nodes[f.world.chance.stream("fault/"+string(by.Name)).IntN(len(nodes))], true
}

// silence makes the client of a node silent. The change in the result sets the node's status.
func (f *fleet) silence(id cluster.NodeID) *outage {
	w := f.world
	o := &outage{status: &change{operator: w.Operator}}
	o.status.apply = func() shims.Message {
		if !w.Truth().Node(id).Reachable() {
			return nil
		}
		return w.Operator.Requests.NodeStatus(id, cluster.NodeDisconnected, false)
	}
	o.status.revert = func() shims.Message {
		if n := w.Truth().Node(id); n == nil || n.Reachable() || f.silent[id] != nil {
			return nil
		}
		return w.Operator.Requests.NodeStatus(id, cluster.NodeReady, false)
	}
	f.silent[id] = o
	f.changed(id) // the client drops the reports that it has not sent
	return o
}

// cannotHeartbeat reports whether the node has a real client whose heartbeats do not reach the servers.
func (f *fleet) cannotHeartbeat(id cluster.NodeID) bool {
	if f.real == nil || f.real.node(id) == nil {
		return false
	}
	return f.silent[id] != nil || !machine.Works(f.real.node(id).machine)
}

// cutOff makes the client of a node silent forever.
func (f *fleet) cutOff(id cluster.NodeID) {
	o := f.silent[id]
	if o == nil {
		o = f.silence(id)
	}
	o.permanent = true
	f.world.At(f.world.now.Add(heartbeat), o.status.start)
}

// end ends an outage that is not permanent.
func (f *fleet) endOutage(id cluster.NodeID, o *outage) error {
	if o.permanent {
		return nil
	}
	delete(f.silent, id)
	if f.real != nil {
		if err := f.real.returns(id); err != nil {
			return err
		}
	}
	f.changed(id)
	return o.status.end()
}

// await makes a node that is disconnected since a time down when none of its allocations is awaited any more,
// as the timers of the real servers do.
func (f *fleet) await(id cluster.NodeID, since time.Time) error {
	w := f.world
	disconnected := func() bool {
		n := w.Truth().Node(id)
		return n != nil && n.Status == cluster.NodeDisconnected && n.StatusChangedAt.Equal(since)
	}
	if !disconnected() {
		return nil
	}
	status, until := scheduler.AwayStatus(w.Truth().WorkView(), id, w.Clock())
	if status == cluster.NodeDisconnected {
		w.At(w.now.Add(until.Sub(w.Clock())), func() error { return f.await(id, since) })
		return nil
	}
	w.Operator.sendUntilApplied(func() shims.Message {
		if !disconnected() {
			return nil
		}
		return w.Operator.Requests.NodeStatus(id, cluster.NodeDisconnected, false)
	})
	return nil
}
