package swarm

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// How likely something is left broken when all else is calm, of each kind: a world in
// which everything heals hides what only goes on because it does.
const (
	oddsOfCut       = 0.2
	oddsOfNeverStop = 0.15
)

// drawOutside draws what stays broken for good outside of the core that the drains need:
// a minority of the servers, a few of the nodes, and allocations that do not stop on nodes
// whose drain has a deadline.
func (m *maker) drawOutside() {
	d := m.dice("outside")
	if minority := (m.s.Cluster.Servers - 1) / 2; minority > 0 && d.odds(oddsOfCut) {
		for _, i := range d.Perm(m.s.Cluster.Servers)[:d.between(1, minority)] {
			m.s.Run.CutServers = append(m.s.Run.CutServers, i+1)
		}
		slices.Sort(m.s.Run.CutServers)
	}
	if d.odds(oddsOfCut) {
		if nodes := some(d, d.between(1, m.shape.times), m.untouched()); len(nodes) > 0 {
			m.s.Run.CutNodes = nodes
		}
	}
	if e := one(d, m.drains...); e.request.Deadline > 0 && d.odds(oddsOfNeverStop) {
		m.s.Clients = append(m.s.Clients, scenario.Client{Match: scenario.Selector{Node: e.node}, Stop: never()})
	}
}

// untouched are the nodes that nobody drains; and, where there are few, those too whose
// drain has a deadline: it ends all the same.
func (m *maker) untouched() []cluster.NodeID {
	needed := map[cluster.NodeID]bool{}
	for _, e := range m.drains {
		if e.request.Deadline <= 0 || len(m.nodes) > fewNodes {
			needed[e.node] = true
		}
	}
	var free []cluster.NodeID
	for _, n := range m.nodes {
		if !needed[n.id] {
			free = append(free, n.id)
		}
	}
	return free
}
