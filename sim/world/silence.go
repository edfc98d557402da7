package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

const (
	// heartbeat is how long the servers wait for a client before they say that its
	// node is down, or disconnected.
	heartbeat = 10 * time.Second
	// askAgain is when what was not written, or may not have been, is asked for again.
	askAgain = time.Second
)

// silence is a node whose client says nothing and hears nothing.
type silence struct {
	world *World
	node  cluster.NodeID
	// status is what the servers say of the node once they have noticed, said what
	// they last asked to have written of it, or nil.
	status cluster.NodeStatus
	said   shims.Message
	// over says that the client speaks again, forGood that it never does.
	over, forGood bool
}

// loseNode has a node's client fall silent, and return after the fault's delay.
// Between, the servers find out and say so.
func (w *World) loseNode(f *fault) error {
	id, found := w.nodeFor(f)
	if !found || !w.chance(f, target{}) {
		return nil
	}
	s := &silence{world: w, node: id, status: cluster.NodeDown}
	if f.Name == scenario.NodeDisconnect {
		s.status = cluster.NodeDisconnected
	}
	away := w.struck(f, target{Words: []string{string(id)}})
	w.clients.silent[id] = s
	w.clients.clients.Changed(id) // what it was about to say it says no more
	if away > heartbeat {
		w.At(w.now.Add(heartbeat), func() error { w.insist(s.gone); return nil })
	}
	w.after(away, s.end)
	return nil
}

// nodeFor is the node a fault is on, or one that is drawn from those in touch.
func (w *World) nodeFor(f *fault) (id cluster.NodeID, found bool) {
	var nodes []cluster.NodeID
	for n := range w.Truth().Nodes() {
		if w.clients.silent[n.ID] == nil && (f.On == "" && n.Reachable() || cluster.NodeID(f.On) == n.ID) {
			nodes = append(nodes, n.ID)
		}
	}
	if len(nodes) == 0 {
		return "", false
	}
	return nodes[w.streams.of("fault/"+string(f.Name)).IntN(len(nodes))], true
}

// cut has the client of a node be silent for good, whether it speaks now or not.
func (f *fleet) cut(id cluster.NodeID) {
	w := f.world
	s := f.silent[id]
	if s == nil {
		s = &silence{world: w, node: id, status: cluster.NodeDown}
		f.silent[id] = s
		f.clients.Changed(id)
	}
	s.forGood = true
	w.At(w.now.Add(heartbeat), func() error { w.insist(s.gone); return nil })
}

// gone is what the servers have written of a node that they do not hear of, until it
// is.
func (s *silence) gone() shims.Message {
	if s.over || !s.world.Truth().Node(s.node).Reachable() {
		return nil
	}
	s.said = s.world.requests.NodeStatus(s.node, s.status, false)
	return s.said
}

// end has the client speak again.
func (s *silence) end() error {
	if s.forGood {
		return nil
	}
	w := s.world
	s.over = true
	delete(w.clients.silent, s.node)
	w.clients.clients.Changed(s.node)
	return w.settled(func() shims.Message { return s.said }, func() error { w.insist(s.back); return nil })
}

// back is what a client that speaks has written of its node if the servers have given
// it up.
func (s *silence) back() shims.Message {
	w := s.world
	if n := w.Truth().Node(s.node); n == nil || n.Reachable() || w.clients.silent[s.node] != nil {
		return nil
	}
	return w.requests.NodeStatus(s.node, cluster.NodeReady, false)
}

// insist has something written, however often it takes. write makes it, and returns
// nil when it is not wanted any more.
func (w *World) insist(write func() shims.Message) {
	m := write()
	if m == nil {
		return
	}
	again := func() { w.At(w.now.Add(askAgain), func() error { w.insist(write); return nil }) }
	taken := w.log.propose(nil, FromOperator, m, func(a shims.Answer) {
		if a.Outcome != raftwrite.Applied {
			again()
		}
	})
	if !taken {
		again()
	}
}

// settled does something once a message, nil for none, is not under way any more.
func (w *World) settled(message func() shims.Message, do func() error) error {
	if !w.log.holds(message()) {
		return do()
	}
	w.At(w.now.Add(askAgain), func() error { return w.settled(message, do) })
	return nil
}
