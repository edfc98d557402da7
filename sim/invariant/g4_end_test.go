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

// bounded is options with figures that are easy to add up: a write takes 4 s, of
// which 1 s is the wait before it is tried again and three rounds take 1 s each.
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
		{"a drain that runs on past deadline, marks, stop time and end", invariant.LateEnd, nil, func(t *testing.T) *stage {
			s := calm(t, bounded(), time.Minute)
			s.wait(time.Minute + writeTime + stopTime + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a drain whose stages take longer than they may", invariant.LateEnd, nil, func(t *testing.T) *stage {
			s := layers(t, bounded(), time.Minute)
			s.lead(1)
			s.j.Calm(s.now)
			s.wait(time.Minute + 3*(writeTime+stopTime) + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a drain whose deadline had passed in the storm", invariant.LateEnd, nil, func(t *testing.T) *stage {
			s := leading(t, bounded())
			s.drain("n1", time.Minute)
			s.wait(time.Hour)
			s.j.Calm(s.now)
			s.wait(10*time.Second + writeTime + stopTime + writeTime + 1)
			s.look(1)
			return s
		}},
		{"a drain past the wait for a mark that was stamped by a clock which was set back since", invariant.LateEnd, nil, func(t *testing.T) *stage {
			s := aheadInFlight(t)
			s.wait(time.Hour + stopTime + writeTime + 1)
			s.look(1)
			return s
		}},
		{"an empty node that drains on", invariant.EndForgotten, nil, func(t *testing.T) *stage {
			s := calm(t, bounded(), 0)
			s.wait(20 * time.Second)
			s.ended("a1")
			s.wait(writeTime + 1)
			s.look(1)
			return s
		}},
		{"a paced mark that is not planned", invariant.Stalled, []invariant.Check{invariant.UntrueReason}, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.quiet(waiting)
			return s
		}},
		{"an end that is not planned", invariant.Stalled, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.ended("a1")
			s.look(1)
			s.quiet()
			return s
		}},
		{"a deadline mark that is not planned", invariant.Stalled, []invariant.Check{invariant.UntrueReason}, func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.wait(time.Minute + invariant.DefaultCoalesce)
			s.look(1)
			s.quiet(waiting)
			return s
		}},
		{"a deadline that passes while nothing happens, and the drainer does not wake", invariant.Stalled, nil, func(t *testing.T) *stage {
			s := unmoved(t)
			s.wait(time.Minute + invariant.DefaultCoalesce)
			s.still()
			return s
		}},
		{"a deadline that a clock set right shows to have passed, and no look at the clock", invariant.Stalled, nil, func(t *testing.T) *stage {
			s := setRight(t)
			s.wait(30 * time.Second)
			s.still()
			return s
		}},
		{"a free mark that is not planned", invariant.Stalled, []invariant.Check{invariant.UntrueReason}, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.sick("a1")
			s.look(1)
			s.quiet(waiting)
			return s
		}},
		{"a drain with a deadline that shows no bound", invariant.BoundUnshown, nil, func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = time.Time{} })
			return s
		}},
		{"a drain without a deadline that shows a bound", invariant.BoundUnshown, nil, func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", 0)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = s.now.Add(time.Hour) })
			return s
		}},
		{"a bound that nothing gives", invariant.BoundUnshown, nil, func(t *testing.T) *stage {
			s := leading(t, bounded())
			s.drain("n1", time.Minute)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = s.now.Add(time.Minute + 2*writeTime + stopTime + 1) })
			return s
		}},
		{"a bound that was shown and is not kept", invariant.BoundBroken, nil, func(t *testing.T) *stage {
			s := calm(t, bounded(), time.Hour)
			s.wait(20 * time.Second)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports[0].EndsBy = s.now.Add(time.Minute) })
			s.wait(time.Minute + 12*time.Second + time.Microsecond)
			s.look(1)
			return s
		}},
		{"an entry that carries another time", invariant.Mistimed, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			m.At = m.At.Add(time.Second)
			s.propose(1, 1, m)
			s.look(1)
			return s
		}},
		{"a deadline that counts from the drain's start", invariant.DeadlineMoved, nil, func(t *testing.T) *stage {
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

// unmoved is a stage with a drain that moves nothing for a minute, until its deadline.
func unmoved(t *testing.T) *stage {
	s := web(t, invariant.Options{}, 3, 0)
	s.lead(1)
	s.drain("n1", time.Minute)
	s.look(1)
	return s
}

// setRight is a stage whose clock was set back before a deadline and is right again after it.
// The drainer has not stepped since the drain began.
func setRight(t *testing.T) *stage {
	s := unmoved(t)
	s.wait(50 * time.Second)
	s.j.ClockSet(s.now, 1, -10*time.Second)
	s.wait(15 * time.Second)
	s.j.ClockSet(s.now, 1, 0)
	return s
}

func fineEnd() []fine {
	return []fine{
		// Small seed 5021365: the judge took a clock that is right again for one that was
		// never set.
		{"a deadline that a clock set right shows to have passed, before the next look at the clock", func(t *testing.T) *stage {
			s := setRight(t)
			s.wait(30*time.Second - 1)
			s.still()
			return s
		}},
		{"nothing happens, and nothing is due or the drainer is held up", func(t *testing.T) *stage {
			s := unmoved(t)
			s.wait(time.Minute - 1)
			s.still()
			s.wait(time.Minute)
			s.still(held)
			return s
		}},
		{"a drain that ends at its bound", func(t *testing.T) *stage {
			s := calm(t, bounded(), time.Minute)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "a1")
			s.wait(writeTime + stopTime + writeTime)
			s.end("n1")
			return s
		}},
		{"stages that take all of their time", func(t *testing.T) *stage {
			s := layers(t, bounded(), time.Minute)
			s.lead(1)
			s.j.Calm(s.now)
			s.wait(time.Minute + 3*(writeTime+stopTime) + writeTime)
			s.look(1)
			return s
		}},
		{"a deadline that is extended in the calm, and an allocation that lands", func(t *testing.T) *stage {
			s := calm(t, bounded(), time.Minute)
			s.drain("n1", time.Hour)
			s.wait(time.Hour)
			s.place("b1", "web", "n1")
			s.wait(writeTime + stopTime + writeTime)
			s.look(1)
			return s
		}},
		{"a leader whose clock is behind", func(t *testing.T) *stage {
			s := calm(t, bounded(), time.Minute)
			s.j.ClockSet(s.now, 1, -time.Hour)
			s.wait(time.Hour + time.Minute)
			s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: s.now.Add(-time.Hour), Woken: true, View: s.state(), Looks: 1})
			return s
		}},
		{"plugins that wait for what never stops", func(t *testing.T) *stage {
			o := bounded()
			o.Policy.PluginsAfterDeadline = rules.PluginsAfterStop
			s := layers(t, o, time.Minute)
			s.lead(1)
			s.j.Calm(s.now)
			s.wait(24 * time.Hour)
			s.look(1)
			return s
		}},
		// Small seed 7056254: the mark was in flight when the clock was set back.
		{"a mark that was stamped by a clock which was set back since", func(t *testing.T) *stage {
			s := aheadInFlight(t)
			s.wait(time.Hour + stopTime + writeTime)
			s.look(1)
			return s
		}},
		// Small seed 7066521: the judge knew nothing of the allocation.
		{"an allocation placed past the log, in the calm, on a node that was empty", func(t *testing.T) *stage {
			s := calm(t, bounded(), time.Hour)
			s.ended("a1")
			s.placePastTheLog("a9", "n1")
			s.wait(time.Minute)
			s.look(1)
			return s
		}},
		{"an allocation placed past the log, the last before the calm, on a node that was empty", func(t *testing.T) *stage {
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
		{"a storm of any length", func(t *testing.T) *stage {
			s := leading(t, bounded())
			s.drain("n1", time.Minute)
			s.wait(24 * time.Hour)
			s.look(1)
			return s
		}},
		{"a deadline within its coalescing window", func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.wait(time.Minute + invariant.DefaultCoalesce - 1)
			s.look(1)
			s.quiet()
			return s
		}},
		{"what could be done while something holds the drainer up", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.quiet(held, waiting)
			s.stepUntil(1, false, s.now.Add(time.Millisecond)) // it waits for a look
			s.quiet(waiting)
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.quiet(waiting)
			return s
		}},
		{"a mark that was refused not long ago", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			s.propose(1, 1, m)
			s.look(1)
			s.sick("a3")
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

// aheadInFlight is a stage in the calm, whose deadline mark was proposed by a clock an hour
// ahead and applied when the clock was right again.
func aheadInFlight(t *testing.T) *stage {
	s := calm(t, bounded(), time.Minute)
	s.wait(time.Minute)
	m := s.marks(cluster.MarkDeadline, "a1")
	m.At = s.now.Add(time.Hour)
	s.apply(m)
	return s
}

// placePastTheLog places an allocation of the job web, which no entry says.
func (s *stage) placePastTheLog(id cluster.AllocID, on cluster.NodeID) {
	s.index++
	before := s.state()
	txn := s.fsm.Store().Begin(s.index)
	_, err := txn.ApplyPlan(&cluster.Plan{At: s.now, Places: []*cluster.Allocation{{
		ID: id, Name: "web.web[9]", Namespace: "default", JobID: "web", Job: before.Job(jobKey("web")), TaskGroup: "web", NodeID: on,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: s.now,
	}}})
	must.NoError(s.t, err)
	txn.Commit()
	s.tell(shims.Applied{Index: s.index, Response: shims.Skipped{}, Before: before, After: s.state()})
}

// calm is a stage in the calm, with a leader and n1 that drains.
func calm(t *testing.T, o invariant.Options, deadline time.Duration) *stage {
	s := leading(t, o)
	s.drain("n1", deadline)
	s.look(1)
	s.j.Calm(s.now)
	return s
}
