package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// heartbeat is how long the servers wait for a client before they say that its
// node is down, or disconnected.
const heartbeat = 10 * time.Second

// loseNode has a node's client fall silent, and return after the fault's delay.
// Between, the servers find out and say so.
func (w *World) loseNode(f *fault) error {
	id, found := w.nodeFor(f)
	if !found || !w.chance(f, target{}) {
		return nil
	}
	away := w.struck(f, target{words: []string{string(id)}})
	status := cluster.NodeDown
	if f.Name == scenario.NodeDisconnect {
		status = cluster.NodeDisconnected
	}
	w.clients.silent[id]++
	silence := w.clients.silent[id]
	if away > heartbeat {
		w.At(w.now.Add(heartbeat), func() error {
			if w.clients.silent[id] == silence && w.Truth().Node(id) != nil {
				w.SetNodeStatus(id, status)
			}
			return nil
		})
	}
	w.after(away, func() error { return w.returnNode(id) })
	return nil
}

// returnNode has a node's client speak again.
func (w *World) returnNode(id cluster.NodeID) error {
	delete(w.clients.silent, id)
	w.clients.clients.Changed(id)
	if n := w.Truth().Node(id); n != nil && !n.Reachable() {
		w.SetNodeStatus(id, cluster.NodeReady)
	}
	return nil
}

// nodeFor is the node a fault is on, or one that is drawn from those in touch.
func (w *World) nodeFor(f *fault) (id cluster.NodeID, found bool) {
	var nodes []cluster.NodeID
	for n := range w.Truth().Nodes() {
		if w.clients.silent[n.ID] == 0 && (f.On == "" && n.Reachable() || cluster.NodeID(f.On) == n.ID) {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return "", false
	}
	return nodes[w.streams.of("fault/"+string(f.Name)).IntN(len(nodes))], true
}

// cordon has nothing placed anywhere for a while.
func (w *World) cordon(f *fault) error {
	var nodes []cluster.NodeID
	for n := range w.Truth().Nodes() {
		if n.SchedulingEligibility == cluster.NodeEligible {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	d := w.struck(f, target{})
	for _, id := range nodes {
		w.SetEligibility(id, cluster.NodeIneligible)
	}
	w.after(d, func() error {
		for _, id := range nodes {
			if n := w.Truth().Node(id); n != nil && !n.Draining() {
				w.SetEligibility(id, cluster.NodeEligible)
			}
		}
		return nil
	})
	return nil
}
