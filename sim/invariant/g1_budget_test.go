package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenBudget() []broken {
	return []broken{
		{"a bad verdict that the store ignores", invariant.VerdictLost, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			bad := reportOf("a3", "n3")
			bad.Reports[0].Healthy, bad.Reports[0].HealthyAt = new(bool), s.now
			s.fake(bad, shims.ChangeApplied{}, func(*statestore.Txn) {})
			return s
		}},
		{"a verdict that has the time of its client", invariant.WronglyHeld, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			bad := unhealthy(s, "a3", "n3")
			s.fake(bad, shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.UpdateAllocsFromClient(bad.Reports, bad.Reports[0].HealthyAt) })
			return s
		}},
		{"a free mark on an allocation that was healthy", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.apply(unhealthy(s, "a1", "n1"))
			s.drain("n1", 0)
			s.wait(cluster.DefaultHealthyDeadline - time.Second)
			m := s.marks(cluster.MarkFree, "a1")
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, s.evalsOf(m), s.markRows(m))
			return s
		}},
		{"a mark on an ended allocation", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.ended("a1")
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, s.evalsOf(m), s.markRows(m))
			return s
		}},
		{"an entry with another policy", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			m.Policy.HealthGrace = time.Nanosecond
			s.apply(m)
			return s
		}},
	}
}

func fineBudget() []fine {
	return []fine{
		{"a paced mark before a deadline mark of the same entry", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.drain("n2", time.Minute)
			s.wait(time.Minute)
			m := s.marks(cluster.MarkPaced, "a1")
			n := s.marks(cluster.MarkDeadline, "a2")
			m.Marks.Marks = append(m.Marks.Marks, n.Marks.Marks...)
			s.apply(m)
			return s
		}},
		{"a free mark on an allocation that was healthy until its healthy deadline", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.apply(unhealthy(s, "a1", "n1"))
			s.drain("n1", 0)
			s.wait(cluster.DefaultHealthyDeadline)
			s.mark(cluster.MarkFree, "a1")
			return s
		}},
		{"a gone mark of a group that was renamed", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			j := service("web", 3, 1)
			j.TaskGroups[0].Name = "renamed"
			s.job(j)
			s.mark(cluster.MarkGone, "a1")
			return s
		}},
	}
}

// unhealthy is a report that an allocation is unhealthy, in a cluster in which its entry has a time. The
// clock of the client is an hour behind.
func unhealthy(s *fixture, id cluster.AllocID, on cluster.NodeID) *shims.AllocClientUpdate {
	s.apply(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	m := reportOf(id, on)
	m.At = s.now
	m.Reports[0].Healthy, m.Reports[0].HealthyAt = new(bool), s.now.Add(-time.Hour)
	return m
}

func proceed() invariant.Options {
	return invariant.Options{Policy: rules.Policy{BelowBudget: rules.BelowBudgetProceed}}
}
