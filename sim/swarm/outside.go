package swarm

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The probabilities that something stays broken after the calm begins. A world in which everything
// heals hides drains that only end because it does.
const (
	oddsOfCut       = 0.2
	oddsOfNeverStop = 0.15
)

// drawOutside draws a minority of the servers, a few nodes, and allocations that never stop on nodes
// whose drain has a deadline. They stay broken for good, and no drain needs them.
func (m *story) drawOutside() {
	d := m.draft.dice("outside")
	if minority := (m.draft.s.Cluster.Servers - 1) / 2; minority > 0 && d.odds(oddsOfCut) {
		for _, i := range d.Perm(m.draft.s.Cluster.Servers)[:d.between(1, minority)] {
			m.draft.s.Run.CutServers = append(m.draft.s.Run.CutServers, i+1)
		}
		slices.Sort(m.draft.s.Run.CutServers)
	}
	if d.odds(oddsOfCut) {
		if nodes := some(d, d.between(1, m.draft.shape.times), m.untouched()); len(nodes) > 0 {
			m.draft.s.Run.CutNodes = nodes
		}
	}
	if e := one(d, m.drains...); e.request.Deadline > 0 && d.odds(oddsOfNeverStop) {
		m.draft.s.Clients = append(m.draft.s.Clients, scenario.Client{Match: scenario.Selector{Node: e.node}, Stop: never()})
	}
}

// untouched returns the nodes without a drain. In a small world it also returns those whose drain
// has a deadline, because such a drain ends anyway.
func (m *story) untouched() []cluster.NodeID {
	needed := map[cluster.NodeID]bool{}
	for _, e := range m.drains {
		if e.request.Deadline <= 0 || len(m.population.nodes) > fewNodes {
			needed[e.node] = true
		}
	}
	var free []cluster.NodeID
	for _, n := range m.population.nodes {
		if !needed[n.id] {
			free = append(free, n.id)
		}
	}
	return free
}
