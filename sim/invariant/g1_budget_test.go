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
		{"one paced mark too many on two nodes", invariant.BelowLimit, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			s.markAnyway(cluster.MarkPaced, "a1", "a2") // two nodes, one budget
			return s
		}},
		{"a paced mark while another allocation is unhealthy", invariant.BelowLimit, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.unhealthy("a3")
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a bad verdict that the store ignores", invariant.VerdictLost, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			bad := reportOf("a3", "n3")
			bad.Reports[0].Healthy, bad.Reports[0].HealthyAt = new(bool), s.now
			s.fake(bad, shims.ChangeApplied{}, func(*statestore.Txn) {})
			return s
		}},
		{"a paced mark while another node is down", invariant.BelowLimit, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.status("n3", cluster.NodeDown)
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a paced mark after a scale up", invariant.BelowLimit, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.job(service("web", 4, 1))
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a paced mark on an unhealthy allocation", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.unhealthy("a1")
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a paced mark with max_parallel 0", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 0)
			s.drain("n1", 0)
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a free mark on a healthy allocation", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.markAnyway(cluster.MarkFree, "a1")
			return s
		}},
		{"a free mark just before the verdict is due", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := unjudged(t)
			s.wait(5*time.Minute + invariant.DefaultHealthGrace - 1)
			s.markAnyway(cluster.MarkFree, "b1")
			return s
		}},
		{"a gone mark while the group exists", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.markAnyway(cluster.MarkGone, "a1")
			return s
		}},
		{"a deadline mark before the deadline", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", time.Minute)
			s.wait(time.Minute - 1)
			s.markAnyway(cluster.MarkDeadline, "a1")
			return s
		}},
		{"a forced mark without force", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", time.Minute)
			s.wait(time.Hour)
			s.markAnyway(cluster.MarkForced, "a1")
			return s
		}},
		{"a paced mark after the deadline", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", time.Minute)
			s.wait(time.Minute)
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a mark on a disconnected node", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.unhealthy("a1")
			s.status("n1", cluster.NodeDisconnected)
			s.markAnyway(cluster.MarkFree, "a1")
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
		{"a mark to proceed without the policy", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 4, 1)
			s.drain("n1", 0)
			s.markAnyway(cluster.MarkProceed, "a1")
			return s
		}},
		{"a second mark to proceed", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, proceed(), 4, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			m := s.marks(cluster.MarkProceed, "a1", "a2")
			m.Policy = proceed().Policy
			s.applyUnchecked(m)
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
		{"two free marks with one slot", invariant.SlotsTaken, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			s.unhealthy("a1", "a2")
			s.mark(cluster.MarkFree, "a1")
			s.markAnyway(cluster.MarkFree, "a2")
			return s
		}},
		{"a canary mark before the verdict on another canary's replacement", invariant.SlotsTaken, nil, func(t *testing.T) *fixture {
			s := canaries(t)
			s.place("c3", "web", "n3", canary, replacing("c1"))
			s.report(cluster.ClientRunning, nil, "c3")
			s.markAnyway(cluster.MarkCanary, "c2")
			return s
		}},
	}
}

func fineBudget() []fine {
	return []fine{
		{"as many paced marks as the budget allows", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 2)
			s.drain("n1", 0)
			s.drain("n2", 0)
			s.mark(cluster.MarkPaced, "a1", "a2")
			return s
		}},
		{"a scale down makes room", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			s.job(service("web", 2, 1))
			s.mark(cluster.MarkPaced, "a1", "a2")
			return s
		}},
		{"a free mark when the verdict is due", func(t *testing.T) *fixture {
			s := unjudged(t)
			s.wait(5*time.Minute + invariant.DefaultHealthGrace)
			s.mark(cluster.MarkFree, "b1")
			return s
		}},
		{"deadline marks below the limit", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", time.Minute)
			s.drain("n2", time.Minute)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "a1", "a2")
			return s
		}},
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
		{"one mark to proceed", func(t *testing.T) *fixture {
			s := web(t, proceed(), 4, 1)
			s.drain("n1", 0)
			s.closeEvals("web")
			m := s.marks(cluster.MarkProceed, "a1")
			m.Policy = proceed().Policy
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
		{"a canary mark after the verdict on another canary's replacement", func(t *testing.T) *fixture {
			s := canaries(t)
			s.place("c3", "web", "n3", canary, replacing("c1"))
			s.run("c3")
			s.mark(cluster.MarkCanary, "c2")
			return s
		}},
		{"a free mark after the end of the previous one", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			s.unhealthy("a1", "a2")
			s.mark(cluster.MarkFree, "a1")
			s.ended("a1")
			s.mark(cluster.MarkFree, "a2")
			return s
		}},
	}
}

// unjudged is a fixture with the allocation b1 without a verdict on the draining node n1.
func unjudged(t *testing.T) *fixture {
	s := web(t, invariant.Options{}, 4, 1)
	s.place("b1", "web", "n1")
	s.report(cluster.ClientRunning, nil, "b1")
	s.drain("n1", 0)
	return s
}

// canaries is a fixture with two healthy canaries on draining nodes. c1 has left.
func canaries(t *testing.T) *fixture {
	s := web(t, invariant.Options{}, 3, 1)
	s.place("c1", "web", "n1", canary)
	s.place("c2", "web", "n2", canary)
	s.run("c1", "c2")
	s.drain("n1", 0)
	s.drain("n2", 0)
	s.mark(cluster.MarkCanary, "c1")
	s.stop("c1", true)
	s.ended("c1")
	return s
}

func proceed() invariant.Options {
	return invariant.Options{Policy: rules.Policy{BelowBudget: rules.BelowBudgetProceed}}
}
