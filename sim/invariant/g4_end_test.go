package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
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

const (
	writeTime = 4 * time.Second
	stopTime  = 5*time.Second + invariant.DefaultStopMargin
)

func brokenEnd() []broken {
	return []broken{
		{"a drain past its bound", invariant.LateEnd, nil, func(t *testing.T) *fixture {
			s := calm(t, bounded(), time.Minute)
			s.wait(time.Minute + writeTime + stopTime + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a drain with all stages past its bound", invariant.LateEnd, nil, func(t *testing.T) *fixture {
			s := allStages(t, bounded(), time.Minute)
			s.lead(1)
			s.j.Calm(s.now)
			s.wait(time.Minute + 3*(writeTime+stopTime) + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a storage plugin past its hold", invariant.LateEnd, nil, func(t *testing.T) *fixture {
			s := heldPlugin(t)
			s.wait(time.Minute + 3*(writeTime+stopTime) + 10*time.Minute + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a drain past its bound, with a deadline before the end of the faults", invariant.LateEnd, nil, func(t *testing.T) *fixture {
			s := leading(t, bounded())
			s.drain("n1", time.Minute)
			s.wait(time.Hour)
			s.j.Calm(s.now)
			s.wait(10*time.Second + writeTime + stopTime + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a drain past its bound, with a mark from before the clock was set back", invariant.LateEnd, nil, func(t *testing.T) *fixture {
			s := markFromTheFuture(t)
			s.wait(time.Hour + stopTime + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a drain that runs on with an empty node", invariant.EndForgotten, nil, func(t *testing.T) *fixture {
			s := calm(t, bounded(), 0)
			s.wait(20 * time.Second)
			s.ended("a1")
			s.wait(writeTime + 1)
			s.look(1)
			return s
		}},
		{"a paced mark that is not planned", invariant.Stalled, []invariant.Check{invariant.UntrueReason}, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.quiet(waiting)
			return s
		}},
		{"an end that is not planned", invariant.Stalled, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.ended("a1")
			s.look(1)
			s.quiet()
			return s
		}},
		{"a deadline mark that is not planned", invariant.Stalled, []invariant.Check{invariant.UntrueReason}, func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.wait(time.Minute + invariant.DefaultCoalesce)
			s.look(1)
			s.quiet(waiting)
			return s
		}},
		{"a drainer that sleeps past a deadline", invariant.Stalled, nil, func(t *testing.T) *fixture {
			s := unmoved(t)
			s.wait(time.Minute + invariant.DefaultCoalesce)
			s.still()
			return s
		}},
		{"a drainer that does not notice a corrected clock", invariant.Stalled, nil, func(t *testing.T) *fixture {
			s := clockCorrected(t)
			s.wait(30 * time.Second)
			s.still()
			return s
		}},
		{"a free mark that is not planned", invariant.Stalled, []invariant.Check{invariant.UntrueReason}, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.unhealthy("a1")
			s.look(1)
			s.quiet(waiting)
			return s
		}},
		{"a drain with a deadline that shows no bound", invariant.WrongBound, nil, func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = time.Time{} })
			return s
		}},
		{"a drain without a deadline that shows a bound", invariant.WrongBound, nil, func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", 0)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = s.now.Add(time.Hour) })
			return s
		}},
		{"a shown bound that is too late", invariant.WrongBound, nil, func(t *testing.T) *fixture {
			s := leading(t, bounded())
			s.drain("n1", time.Minute)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = s.now.Add(time.Minute + 2*writeTime + stopTime + 1) })
			return s
		}},
		{"a drain past its shown bound", invariant.BoundBroken, nil, func(t *testing.T) *fixture {
			s := calm(t, bounded(), time.Hour)
			s.wait(20 * time.Second)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = s.now.Add(time.Minute) })
			s.wait(time.Minute + 12*time.Second + time.Microsecond)
			s.look(1)
			return s
		}},
		{"an entry with another time than the clock", invariant.Mistimed, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			m.At = m.At.Add(time.Second)
			s.propose(1, 1, m)
			s.look(1)
			return s
		}},
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

// heldPlugin is a fixture with all stages, on a node that registers a hold of ten minutes when the
// bound of its drain has been set.
func heldPlugin(t *testing.T) *fixture {
	s := allStages(t, bounded(), time.Minute)
	s.lead(1)
	s.j.Calm(s.now)
	s.limits("n1", time.Hour, 10*time.Minute) // no consumer has volumes
	return s
}

// unmoved is a fixture with a drain that makes no marks until its deadline in a minute.
func unmoved(t *testing.T) *fixture {
	s := web(t, invariant.Options{}, 3, 0)
	s.lead(1)
	s.drain("n1", time.Minute)
	s.look(1)
	return s
}

// clockCorrected is a fixture whose clock was set back before a deadline and corrected after it.
// The drainer has not stepped since.
func clockCorrected(t *testing.T) *fixture {
	s := unmoved(t)
	s.wait(50 * time.Second)
	s.j.ClockSet(s.now, 1, -10*time.Second)
	s.wait(15 * time.Second)
	s.j.ClockSet(s.now, 1, 0)
	return s
}

func fineEnd() []fine {
	return []fine{
		// Small seed 5021365: the judge overlooked a clock that was set and corrected.
		{"a deadline after a corrected clock, before the drainer checks its clock", func(t *testing.T) *fixture {
			s := clockCorrected(t)
			s.wait(30*time.Second - 1)
			s.still()
			return s
		}},
		{"a silence before the deadline, and one of a delayed drainer", func(t *testing.T) *fixture {
			s := unmoved(t)
			s.wait(time.Minute - 1)
			s.still()
			s.wait(time.Minute)
			s.still(held)
			return s
		}},
		{"a drain that ends at its bound", func(t *testing.T) *fixture {
			s := calm(t, bounded(), time.Minute)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "a1")
			s.wait(writeTime + stopTime + writeTime)
			s.end("n1")
			return s
		}},
		{"stages that take their longest time", func(t *testing.T) *fixture {
			s := allStages(t, bounded(), time.Minute)
			s.lead(1)
			s.j.Calm(s.now)
			s.wait(time.Minute + 3*(writeTime+stopTime) + writeTime)
			s.look(1)
			return s
		}},
		{"a storage plugin that uses its hold, after a new registration of the node", func(t *testing.T) *fixture {
			s := heldPlugin(t)
			s.wait(time.Minute + 3*(writeTime+stopTime) + 10*time.Minute + writeTime)
			s.look(1)
			return s
		}},
		{"a storage plugin that has to leave since the end of the allocation that it served", func(t *testing.T) *fixture {
			s := servingPlugin(t, bounded())
			s.job(service("web", 1, 1))
			s.place("a1", "web", "n1")
			s.run("a1")
			s.apply(s.request("n1", &cluster.DrainSpec{Deadline: time.Minute, IgnoreSystemJobs: true}))
			s.j.Calm(s.now)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "a1")
			s.ended("s1")
			s.wait(writeTime + stopTime + writeTime + 10*time.Minute)
			s.look(1)
			return s
		}},
		{"an extended deadline and a new allocation after the end of the faults", func(t *testing.T) *fixture {
			s := calm(t, bounded(), time.Minute)
			s.drain("n1", time.Hour)
			s.wait(time.Hour)
			s.place("b1", "web", "n1")
			s.wait(writeTime + stopTime + writeTime)
			s.look(1)
			return s
		}},
		{"a leader whose clock is behind", func(t *testing.T) *fixture {
			s := calm(t, bounded(), time.Minute)
			s.j.ClockSet(s.now, 1, -time.Hour)
			s.wait(time.Hour + time.Minute)
			s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: s.now.Add(-time.Hour), Woken: true, View: s.state(), Looks: 1})
			return s
		}},
		{"plugins that wait for an allocation that never stops", func(t *testing.T) *fixture {
			o := bounded()
			o.Policy.PluginsAfterDeadline = rules.PluginsAfterStop
			s := allStages(t, o, time.Minute)
			s.lead(1)
			s.j.Calm(s.now)
			s.wait(24 * time.Hour)
			s.look(1)
			return s
		}},
		// Small seed 7056254: the mark was in flight when the clock was set back.
		{"a mark from before the clock was set back", func(t *testing.T) *fixture {
			s := markFromTheFuture(t)
			s.wait(time.Hour + stopTime + writeTime)
			s.look(1)
			return s
		}},
		// Small seed 7066521: the judge did not know the allocation.
		{"an allocation placed past the log on an empty node, after the end of the faults", func(t *testing.T) *fixture {
			s := calm(t, bounded(), time.Hour)
			s.ended("a1")
			s.placePastTheLog("a9", "n1")
			s.wait(time.Minute)
			s.look(1)
			return s
		}},
		{"an allocation placed past the log on an empty node, just before the end of the faults", func(t *testing.T) *fixture {
			s := leading(t, bounded())
			s.drain("n1", time.Hour)
			s.ended("a1")
			s.placePastTheLog("a9", "n1")
			s.look(1)
			s.j.Calm(s.now)
			s.wait(time.Minute)
			s.look(1)
			return s
		}},
		{"a long drain while faults last", func(t *testing.T) *fixture {
			s := leading(t, bounded())
			s.drain("n1", time.Minute)
			s.wait(24 * time.Hour)
			s.look(1)
			return s
		}},
		{"a deadline within its coalescing window", func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.wait(time.Minute + invariant.DefaultCoalesce - 1)
			s.look(1)
			s.quiet()
			return s
		}},
		{"possible items of a drainer that has to wait", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.quiet(held, waiting)
			s.stepUntil(1, false, s.now.Add(time.Millisecond)) // it waits for a look
			s.quiet(waiting)
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.quiet(waiting)
			return s
		}},
		{"a mark that was just refused", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			s.propose(1, 1, m)
			s.look(1)
			s.unhealthy("a3")
			r := s.apply(m)
			s.j.Answered(s.now, 1, 1, shims.Answer{Outcome: raftwrite.Applied, Index: s.index, Response: r})
			s.run("a3")
			s.look(1)
			s.wait(invariant.DefaultRetryBase - 1)
			s.quiet(waiting)
			return s
		}},
	}
}

// markFromTheFuture is a fixture after the end of the faults. A leader with a clock an hour ahead
// proposed a deadline mark, and the FSM applied it after the clock was corrected.
func markFromTheFuture(t *testing.T) *fixture {
	s := calm(t, bounded(), time.Minute)
	s.wait(time.Minute)
	m := s.marks(cluster.MarkDeadline, "a1")
	m.At = s.now.Add(time.Hour)
	s.apply(m)
	return s
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
	s.look(1)
	s.j.Calm(s.now)
	return s
}
