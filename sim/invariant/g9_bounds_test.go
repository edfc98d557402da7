package invariant_test

import (
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenBounds() []broken {
	return []broken{
		{"two reads in a step", invariant.TooManyQueries, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: s.now, Woken: true, View: s.state(), Queries: 2})
			return s
		}},
		{"too many records of a node", invariant.TooManyRecords, []invariant.Check{invariant.Unnamed}, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			for i := range cluster.MaxDrainRecordsPerNode + 1 {
				id := cluster.NodeID([]string{"n1", "n2"}[i%2])
				s.drainAs(id, cluster.DrainID(rune('a'+i)))
				s.cancel(id)
			}
			s.forge(reportOf("a1", "n1"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) {
				for d := range state.Drains() {
					d.NodeID = "n1"
				}
			})
			return s
		}},
	}
}

// drainAs starts a drain with an id.
func (s *fixture) drainAs(id cluster.NodeID, drain cluster.DrainID) {
	m := s.request(id, &cluster.DrainSpec{})
	m.Drain = drain
	s.apply(m)
}
