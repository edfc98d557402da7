package sim

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/onnode"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// nodes are the judges of the nodes with real clients.
type nodes struct {
	judges []*onnode.Judge
	by     map[cluster.NodeID]*onnode.Judge
	// settledAt is when the nodes were last judged at rest.
	settledAt time.Time
}

// judge returns a new judge of a node.
func (n *nodes) judge(id cluster.NodeID) machine.Observer {
	if n.by == nil {
		n.by = map[cluster.NodeID]*onnode.Judge{}
	}
	j := onnode.New(id)
	n.judges, n.by[id] = append(n.judges, j), j
	return j
}

// untroubled is how long a node works without trouble before it must have nothing left to do.
const untroubled = 10 * time.Minute

// settledEvery is how often nodes at rest are judged, at most.
const settledEvery = time.Minute

// settled judges the nodes that have had no trouble for some time.
func (n *nodes) settled(w *world.World) {
	if w.Now().Before(n.settledAt.Add(settledEvery)) {
		return
	}
	n.settledAt = w.Now()
	for _, m := range w.Machines() {
		if machine.Works(m) && m.Reachable() {
			n.by[m.ID()].Settled(w.Now(), m, w.Truth().WorkView().LiveAllocsByNode(m.ID()))
		}
	}
}

// rows judges the rows of the servers when no fault can delay a report. travel is how long a report
// takes, at most.
func (n *nodes) rows(w *world.World, travel time.Duration) {
	for _, m := range w.Machines() {
		n.by[m.ID()].Rows(w.Now(), m, w.Truth().WorkView().LiveAllocsByNode(m.ID()), travel)
	}
}

// still judges the nodes in a pause in which nothing has happened.
func (n *nodes) still(w *world.World) {
	for _, m := range w.Machines() {
		n.by[m.ID()].Still(w.Now(), m)
	}
}

// stopped reports whether the client of a node has received the stop of an allocation.
func (n *nodes) stopped(node cluster.NodeID, id cluster.AllocID) bool {
	return onnode.Stopped(n.by[node], id)
}

func (n *nodes) violations() (all []invariant.Violation) {
	for _, j := range n.judges {
		all = append(all, j.Violations()...)
	}
	return all
}
