package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// bounded returns options with round numbers: a write takes 4 s, which are one retry of 1 s and
// three rounds of 1 s.
func bounded() invariant.Options {
	return invariant.Options{
		Coalesce: -1, RetryMax: time.Second, QueriesPerSecond: 1e9,
		Bounds: invariant.Bounds{Settle: 10 * time.Second, Write: 600 * time.Millisecond, Wake: 400*time.Millisecond - 4},
	}
}

func brokenEnd() []broken {
	return []broken{
		{"a new deadline that counts from the start of the drain", invariant.DeadlineMoved, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", time.Hour)
			s.wait(time.Minute)
			m := s.request("n1", &cluster.DrainSpec{Deadline: time.Hour})
			s.forge(m, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1"}}, s.updates(m), func(state *statestore.Snapshot) {
				state.Node("n1").Drain.Strategy.ForceDeadline = epoch.Add(time.Hour)
			})
			return s
		}},
	}
}

// placePastTheLog places an allocation of the job web without an entry.
func (s *fixture) placePastTheLog(id cluster.AllocID, on cluster.NodeID) {
	s.index++
	before := s.state()
	txn := s.fsm.Store().Begin(s.index)
	_, err := txn.ApplyPlan(&cluster.Plan{At: s.now, Places: []*cluster.Allocation{{
		ID: id, Name: "web.web[9]", Namespace: "default", JobID: "web", Job: before.Job(jobKey("web")), TaskGroup: "web", NodeID: on,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: s.now,
	}}})
	must.NoError(s.t, err)
	txn.Commit()
	s.observe(shims.Applied{Index: s.index, Response: shims.Skipped{}, Before: before, After: s.state()})
}

// calm is a fixture after the end of the faults, with a leader and the draining node n1.
func calm(t *testing.T, o invariant.Options, deadline time.Duration) *fixture {
	s := leading(t, o)
	s.drain("n1", deadline)
	s.read(1)
	s.j.Calm(s.now)
	return s
}
