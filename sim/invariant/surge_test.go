package invariant_test

import (
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// surging is a fixture in which n1 and n2 drain, and the group of three has a max_surge.
func surging(t testing.TB, maxSurge int) *fixture {
	s := web(t, invariant.Options{}, 3, 1)
	s.apply(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	j := service("web", 3, 1)
	j.TaskGroups[0].Migrate.MaxSurge = maxSurge
	s.job(j)
	s.drain("n1", 0)
	s.drain("n2", 0)
	return s
}

// requests returns an entry that requests replacements of allocations.
func (s *fixture) requests(ids ...cluster.AllocID) *shims.AllocUpdateDesiredTransition {
	m := s.marks(cluster.MarkPaced, ids...)
	for i := range m.Marks.Marks {
		m.Marks.Marks[i].Surge = true
	}
	return m
}

func brokenSurge() []broken {
	return []broken{
		{"a paced mark of a group with a max_surge, without a request", invariant.NotReplaced, nil, func(t *testing.T) *fixture {
			s := surging(t, 1)
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a paced mark before the replacement is placed", invariant.NotReplaced, nil, func(t *testing.T) *fixture {
			s := surging(t, 1)
			s.apply(s.requests("a1"))
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a second request where one is permitted", invariant.TooManySurges, nil, func(t *testing.T) *fixture {
			s := surging(t, 1)
			s.apply(s.requests("a1"))
			s.applyUnchecked(s.requests("a2"))
			return s
		}},
		{"a request of a group without a max_surge", invariant.WrongRequest, nil, func(t *testing.T) *fixture {
			s := surging(t, 0)
			s.applyUnchecked(s.requests("a1"))
			return s
		}},
		{"a request that is repeated", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := surging(t, 2)
			s.apply(s.requests("a1"))
			s.wait(1)
			s.applyUnchecked(s.requests("a1"))
			return s
		}},
		{"an allocation that begins to stand by", invariant.WrongStandby, nil, func(t *testing.T) *fixture {
			s := surging(t, 1)
			s.forge(reportOf("a3", "n3"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) { state.Alloc("a3").Standby = true })
			return s
		}},
		{"a valid request that is refused", invariant.ValidRefused, nil, func(t *testing.T) *fixture {
			s := surging(t, 1)
			s.refuse(s.requests("a1"))
			return s
		}},
	}
}

func fineSurge() []fine {
	return []fine{
		{"a second request is refused", func(t *testing.T) *fixture {
			s := surging(t, 1)
			s.apply(s.requests("a1", "a2"))
			return s
		}},
		{"a cancel withdraws a request", func(t *testing.T) *fixture {
			s := surging(t, 1)
			s.apply(s.requests("a1"))
			s.apply(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", At: s.now}, Evals: []*cluster.Evaluation{s.eval("web")}})
			s.apply(s.requests("a2"))
			return s
		}},
		{"a mark of a group with a max_surge that is refused", func(t *testing.T) *fixture {
			s := surging(t, 1)
			m := s.marks(cluster.MarkPaced, "a1")
			s.fake(m, shims.MarksApplied{Refused: []rules.Refusal{{Alloc: "a1", Node: "n1", Why: "no"}}}, func(*statestore.Txn) {})
			return s
		}},
	}
}
