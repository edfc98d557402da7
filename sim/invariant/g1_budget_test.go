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

func proceed() invariant.Options {
	return invariant.Options{Policy: rules.Policy{BelowBudget: rules.BelowBudgetProceed}}
}
