//race:skip one goroutine
package witness_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

const margin = 15 * time.Second

// web is a job of three allocations on two nodes, one of which will drain.
func web(maxParallel int) *log {
	l := newLog(witness.Options{StopMargin: margin})
	l.apply(node("n1", ready), node("n2", ready), job("web", cluster.JobService, 3, maxParallel))
	l.apply(alloc("a1", "web", "n1"), alloc("a2", "web", "n1"), alloc("a3", "web", "n2"))
	return l
}

// A correct drain gives no findings, and its counts are right.
func TestWitness_acceptsACorrectDrain(t *testing.T) {
	t.Parallel()
	l := web(1)
	l.apply(drained("n1", cluster.DrainSpec{}))
	for _, move := range []struct{ old, replacement cluster.AllocID }{{"a1", "b1"}, {"a2", "b2"}} {
		l.at = l.at.Add(time.Second)
		l.apply(marked(move.old, cluster.MarkPaced))
		l.apply(replaced(move.old, move.replacement, "n2"))
		l.apply(changed(move.old, stopped))
		l.apply(changed(move.replacement, running))
	}
	l.apply(ended("n1", cluster.OutcomeComplete, 0))

	must.SliceEmpty(t, l.w.Audit(l.now))
	report := l.w.Report()
	must.True(t, report.Clean())
	must.SliceLen(t, 1, report.Groups)
	g := report.Groups[0]
	must.Eq(t, key("web"), g.Group)
	must.Eq(t, 2, g.PacedMarks)
	low := witness.Level{Healthy: 2, Count: 3, Limit: 2, Index: 4, At: epoch.Add(time.Second)}
	must.Eq(t, low, g.LowestAtMark)
	must.Eq(t, low, g.Lowest)
	must.SliceLen(t, 1, report.Drains)
	d := report.Drains[0]
	must.Eq(t, cluster.OutcomeComplete, d.Outcome)
	must.Eq(t, 2, d.Marked[cluster.MarkPaced])
	must.Eq(t, [3]int{2, 0, 0}, [3]int{d.Moved, d.Stopped, d.Withdrawn})
	must.Eq(t, 2*time.Second, d.EndedAt.Sub(d.StartedAt))
}

// limits sets the node's limits for volumes.
func limits(n *cluster.Node) { n.VolumeAllowance, n.HoldLimit = time.Minute, 10*time.Minute }

// volumesForced starts a forced drain whose consumers have ended, but for one with a volume.
func volumesForced() []edit {
	return []edit{
		node("n1", limits), job("logs", cluster.JobSystem, 1, 0), job("db", cluster.JobService, 1, 1), withVolume("db"),
		drained("n1", cluster.DrainSpec{Deadline: -1}), changed("a1", stopped), changed("a2", stopped),
		alloc("s1", "logs", "n1"), alloc("d1", "db", "n1"),
	}
}

// heldPlugin starts a forced drain that has nothing left but a storage plugin.
func heldPlugin() []edit {
	return []edit{
		node("n1", limits), pluginJob("csi", cluster.JobSystem, 1), drained("n1", cluster.DrainSpec{Deadline: -1}),
		changed("a1", stopped), changed("a2", stopped), alloc("p1", "csi", "n1"),
	}
}

// violation is a log that breaks one rule.
type violation struct {
	name string
	kind witness.Kind
	run  func(l *log)
}

// history is a history without a violation.
type history struct {
	name string
	run  func(l *log)
}

// The witness finds each violation once, with the right kind.
func TestWitness_findsEachViolation(t *testing.T) {
	t.Parallel()
	deadline := cluster.DrainSpec{Deadline: time.Minute}
	cases := []violation{
		{"two paced marks in an entry with room for one", witness.BelowLimit, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced), marked("a2", cluster.MarkPaced))
		}},
		{"a paced mark while the peer is unhealthy", witness.BelowLimit, func(l *log) {
			l.apply(changed("a3", pending))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a paced mark while the peer's node is down", witness.BelowLimit, func(l *log) {
			l.apply(node("n2", func(n *cluster.Node) { n.Status = cluster.NodeDown }))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a paced mark while the peer is a canary", witness.BelowLimit, func(l *log) {
			l.apply(changed("a3", func(a *cluster.Allocation) { a.DeploymentStatus.Canary = true }))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a paced mark after max_parallel was lowered", witness.BelowLimit, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(job("web", cluster.JobService, 3, 0))
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a paced mark after a deadline mark of the same entry", witness.BelowLimit, func(l *log) {
			l.apply(drained("n1", deadline), drained("n2", cluster.DrainSpec{}))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline), marked("a3", cluster.MarkPaced))
		}},
		{"a paced mark in a group that is gone", witness.NoLimit, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(func(w *world, _ time.Time, touched *witness.Touched) {
				delete(w.jobs, key("web").Job)
				touched.Jobs = append(touched.Jobs, key("web").Job)
			})
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a free mark on a healthy allocation", witness.NotFree, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkFree))
		}},
		{"a free mark before the healthy deadline", witness.NotFree, func(l *log) {
			l.apply(changed("a1", unhealthySince(epoch)), drained("n1", cluster.DrainSpec{}))
			l.at = epoch.Add(cluster.DefaultHealthyDeadline - 1)
			l.apply(marked("a1", cluster.MarkFree))
		}},
		{"a mark on a node that does not drain", witness.NotDraining, func(l *log) {
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a mark on a node that does not exist", witness.NotDraining, func(l *log) {
			l.apply(noNode("n1"))
			l.apply(marked("a1", cluster.MarkGone))
		}},
		{"a mark for the previous drain", witness.NotDraining, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0))
			l.apply(drained("n1", cluster.DrainSpec{}), node("n1", func(n *cluster.Node) { n.Drain.ID = "other" }))
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a deadline mark before the deadline", witness.NotDue, func(l *log) {
			l.apply(drained("n1", deadline))
			l.at = epoch.Add(time.Minute - 1)
			l.apply(marked("a1", cluster.MarkDeadline))
		}},
		{"a deadline mark in a drain without a deadline", witness.NotDue, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkDeadline))
		}},
		{"a forced mark without force", witness.NotDue, func(l *log) {
			l.apply(drained("n1", deadline))
			l.apply(marked("a1", cluster.MarkForced))
		}},
		{"a system allocation before the consumers have left", witness.OutOfTurn, func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), drained("n1", cluster.DrainSpec{}))
			l.apply(alloc("s1", "logs", "n1"))
			l.apply(marked("s1", cluster.MarkStage))
		}},
		{"a plugin before the system allocations have left", witness.OutOfTurn, func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), pluginJob("csi", cluster.JobSystem, 1), drained("n1", cluster.DrainSpec{}))
			l.apply(alloc("s1", "logs", "n1"), alloc("p1", "csi", "n1"), changed("a1", stopped), changed("a2", stopped))
			l.apply(marked("p1", cluster.MarkStage))
		}},
		{"a system allocation before the stop time of a consumer ends", witness.OutOfTurn, func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), drained("n1", cluster.DrainSpec{Deadline: -1}))
			l.apply(alloc("s1", "logs", "n1"))
			l.apply(marked("a1", cluster.MarkForced), marked("a2", cluster.MarkForced))
			l.at = epoch.Add(5*time.Second + margin - 1)
			l.apply(marked("s1", cluster.MarkForced))
		}},
		{"a system allocation before the volumes of a consumer must be off", witness.OutOfTurn, func(l *log) {
			l.apply(volumesForced()...)
			l.apply(marked("d1", cluster.MarkForced))
			l.at = epoch.Add(5*time.Second + time.Minute + margin - 1)
			l.apply(marked("s1", cluster.MarkForced))
		}},
		{"the end of a drain while a storage plugin may wait for volumes", witness.EndedEarly, func(l *log) {
			l.apply(heldPlugin()...)
			l.apply(marked("p1", cluster.MarkForced))
			l.at = epoch.Add(5*time.Second + 10*time.Minute + margin - 1)
			l.apply(ended("n1", cluster.OutcomeForced, 1))
		}},
		{"a system allocation before the deadline, while a consumer is out of touch", witness.OutOfTurn, func(l *log) {
			l.apply(changed("a1", pending), job("logs", cluster.JobSystem, 1, 0), drained("n1", deadline))
			l.apply(alloc("s1", "logs", "n1"), changed("a2", stopped))
			l.apply(marked("a1", cluster.MarkFree))
			l.apply(changed("a1", unknown))
			l.apply(marked("s1", cluster.MarkStage))
		}},
		{"complete with a consumer still stopping", witness.EndedEarly, func(l *log) {
			l.apply(changed("a2", pending), drained("n1", cluster.DrainSpec{}))
			l.apply(changed("a1", stopped), marked("a2", cluster.MarkFree))
			l.apply(ended("n1", cluster.OutcomeComplete, 1))
		}},
		{"complete with an allocation of unknown state", witness.EndedEarly, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(changed("a1", stopped), changed("a2", unknown))
			l.apply(ended("n1", cluster.OutcomeComplete, 1))
		}},
		{"a deadline mark planned against an older revision", witness.StaleRevision, func(l *log) {
			l.apply(drained("n1", deadline))
			l.at = epoch.Add(time.Minute)
			l.plan([]witness.Planned{{Alloc: "a1", Node: "n1", Revision: 2}}, marked("a1", cluster.MarkDeadline), evaluated("web", l.index+1))
		}},
		{"an end planned against an older revision", witness.StaleRevision, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(changed("a1", stopped), changed("a2", stopped))
			l.plan([]witness.Planned{{Node: "n1", Revision: 2}}, ended("n1", cluster.OutcomeComplete, 0))
		}},
		{"a mark without an evaluation", witness.NoEvaluation, func(l *log) {
			l.apply(changed("a1", pending), drained("n1", cluster.DrainSpec{}), evaluated("web", 1))
			l.plan([]witness.Planned{{Alloc: "a1", Node: "n1"}}, marked("a1", cluster.MarkFree))
		}},
		{"an end before the stop time ends", witness.EndedEarly, func(l *log) {
			l.apply(drained("n1", deadline))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline), marked("a2", cluster.MarkDeadline))
			l.at = l.at.Add(5*time.Second + margin - 1)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 2))
		}},
		{"an end before the stop time of a late mark ends", witness.EndedEarly, func(l *log) {
			l.apply(drained("n1", deadline), changed("a1", stopped))
			l.at = epoch.Add(time.Hour)
			l.apply(marked("a2", cluster.MarkDeadline))
			l.at = l.at.Add(5*time.Second + margin - 1)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 1))
		}},
		{"an end before the shutdown delays end", witness.EndedEarly, func(l *log) {
			l.apply(job("slow", cluster.JobBatch, 1, 0), func(w *world, _ time.Time, _ *witness.Touched) {
				g := w.jobs[key("slow").Job].TaskGroups[0]
				g.ShutdownDelay, g.Tasks[0].ShutdownDelay = 10*time.Second, 20*time.Second
			})
			l.apply(drained("n1", deadline), changed("a1", stopped), changed("a2", stopped), alloc("z1", "slow", "n1"))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("z1", cluster.MarkDeadline))
			l.at = l.at.Add(35*time.Second + margin - 1)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 1))
		}},
		{"an end before the stop time of an allocation without a mark ends", witness.EndedEarly, func(l *log) {
			l.apply(drained("n1", deadline), changed("a1", stopped))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a2", cluster.MarkDeadline))
			l.apply(changed("a2", stopped), alloc("z1", "web", "n1", func(a *cluster.Allocation) {
				a.DesiredStatus, a.StoppedAt = cluster.DesiredStop, epoch.Add(2*time.Minute)
			}))
			l.at = epoch.Add(2*time.Minute + 5*time.Second + margin - 1)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 1))
		}},
		{"an end with an allocation without a mark", witness.EndedEarly, func(l *log) {
			l.apply(drained("n1", deadline))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline))
			l.at = l.at.Add(time.Hour)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 2))
		}},
		{"complete with a deadline mark", witness.UntrueOutcome, func(l *log) {
			l.apply(drained("n1", deadline))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline), changed("a2", stopped))
			l.apply(changed("a1", stopped))
			l.apply(ended("n1", cluster.OutcomeComplete, 0))
		}},
		{"complete after a deadline with an allocation left", witness.UntrueOutcome, func(l *log) {
			l.apply(changed("a1", pending), drained("n1", deadline))
			l.apply(marked("a1", cluster.MarkFree), changed("a2", stopped))
			l.at = epoch.Add(time.Hour)
			l.apply(ended("n1", cluster.OutcomeComplete, 1))
		}},
		{"complete after force with an allocation left", witness.UntrueOutcome, func(l *log) {
			l.apply(changed("a1", pending), drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkFree), changed("a2", stopped))
			l.apply(updated("n1", func(n *cluster.Node) { n.Drain.Strategy.Deadline = -1 }))
			l.at = epoch.Add(time.Hour)
			l.apply(ended("n1", cluster.OutcomeComplete, 1))
		}},
		{"deadline reached without a deadline mark", witness.UntrueOutcome, func(l *log) {
			l.apply(drained("n1", deadline))
			l.apply(changed("a1", stopped), changed("a2", stopped))
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 0))
		}},
		{"complete with a deleted node", witness.UntrueOutcome, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeComplete, 2), noNode("n1"))
		}},
		{"a record that miscounts stopping allocations", witness.MiscountedStopping, func(l *log) {
			l.apply(drained("n1", deadline))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline), marked("a2", cluster.MarkDeadline))
			l.at = l.at.Add(time.Hour)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 1))
		}},
		{"an end without a record", witness.NoRecord, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(node("n1", func(n *cluster.Node) { n.Drain = nil }))
		}},
		{"an end whose record has no outcome", witness.NoRecord, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeNone, 2))
		}},
		{"a drain's id used again", witness.SecondOutcome, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0))
			l.apply(drained("n1", cluster.DrainSpec{}))
		}},
		{"a mark on an excluded allocation", witness.Excluded, func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), drained("n1", cluster.DrainSpec{IgnoreSystemJobs: true}))
			l.apply(alloc("s1", "logs", "n1"), changed("a1", stopped), changed("a2", stopped))
			l.apply(marked("s1", cluster.MarkStage))
		}},
		{"a mark that is changed", witness.UnexplainedMark, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
			l.apply(changed("a1", func(a *cluster.Allocation) { a.DesiredTransition.MarkedAt = epoch.Add(1) }))
		}},
		{"a mark that sets NoShutdownDelay", witness.UnexplainedMark, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced), changed("a1", func(a *cluster.Allocation) { a.DesiredTransition.NoShutdownDelay = true }))
		}},
		{"a mark in an entry of clients", witness.UnexplainedMark, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.source = witness.Other
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a mark of another class than planned", witness.UnexplainedMark, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.source = witness.Drainer
			l.plan([]witness.Planned{{Alloc: "a1", Node: "n1", Class: cluster.MarkFree}}, marked("a1", cluster.MarkPaced), evaluated("web", l.index+1))
		}},
		{"a mark with another time than its entry", witness.UnexplainedMark, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.source = witness.Drainer
			l.plan([]witness.Planned{{Alloc: "a1", Node: "n1", Class: cluster.MarkPaced}}, marked("a1", cluster.MarkPaced), evaluated("web", l.index+1),
				changed("a1", func(a *cluster.Allocation) { a.DesiredTransition.MarkedAt = epoch.Add(1) }))
		}},
		{"a cancel that leaves a mark", witness.NotWithdrawn, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0))
		}},
		{"a cancel that leaves the class of a mark", witness.NotWithdrawn, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0), changed("a1", func(a *cluster.Allocation) {
				a.DesiredTransition = cluster.DesiredTransition{Class: cluster.MarkPaced}
			}))
		}},
		{"a mark of no drain that is withdrawn", witness.ForeignMarkWithdrawn, func(l *log) {
			l.apply(changed("a1", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true }))
			l.apply(changed("a1", unmarked))
		}},
		{"a deadline mark on batch work that may be placed again", witness.PlacedAgain, func(l *log) {
			l.apply(job("sum", cluster.JobBatch, 1, 0), drained("n1", cluster.DrainSpec{Deadline: -1}))
			l.apply(alloc("z1", "sum", "n1"))
			l.apply(marked("z1", cluster.MarkForced), changed("z1", func(a *cluster.Allocation) { a.DesiredTransition.MigrateDisablePlacement = false }))
		}},
		{"a revision that changes without a request", witness.RevisionMoved, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.source = witness.Other
			l.apply(updated("n1", ready))
		}},
		{"a strategy that changes without its revision", witness.RevisionMoved, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(node("n1", func(n *cluster.Node) { n.Drain.Strategy.Deadline = -1 }))
		}},
		{"a drain that starts with an old revision", witness.RevisionMoved, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}), node("n1", func(n *cluster.Node) { n.Drain.Revision-- }))
		}},
		{"a drain that starts without a request", witness.SecondOutcome, func(l *log) {
			l.source = witness.Other
			l.apply(drained("n1", cluster.DrainSpec{}))
		}},
		{"a record with another revision than its drain", witness.UntrueOutcome, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0), func(w *world, _ time.Time, _ *witness.Touched) { w.records["dn1"].Revision++ })
		}},
		{"a record that does not name a volume", witness.MiscountedVolumes, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}), changed("a1", stopped), changed("a2", stopped))
			l.apply(ended("n1", cluster.OutcomeComplete, 0), func(w *world, _ time.Time, _ *witness.Touched) {
				w.claims = []*cluster.VolumeClaim{{Alloc: "a1", Node: "n1", State: cluster.ClaimTaken}, {Alloc: "a2", Node: "n1", State: cluster.ClaimNodeDetached}}
			})
		}},
		{"a mark that is not counted", witness.MiscountedMarks, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced), node("n1", func(n *cluster.Node) { n.Drain.Marked = [cluster.MarkClassCount]int{} }))
		}},
		{"a purge that deletes a running row", witness.DeletedRunning, func(l *log) { l.apply(purged("a1")) }},
		{"a purge that is not counted", witness.MiscountedPurged, func(l *log) {
			l.now.version = 7
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(purged("a1"), node("n1", ready))
		}},
		{"a drain that ends in an entry of clients", witness.EndedWithoutCause, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}), changed("a1", stopped), changed("a2", stopped))
			l.source = witness.Other
			l.apply(ended("n1", cluster.OutcomeComplete, 0))
		}},
		{"a node that the end of its drain makes eligible", witness.MadeEligible, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}), changed("a1", stopped), changed("a2", stopped))
			l.apply(ended("n1", cluster.OutcomeComplete, 0), node("n1", func(n *cluster.Node) { n.SchedulingEligibility = cluster.NodeEligible }))
		}},
		{"a mark that is removed while its drain runs", witness.MarkLost, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
			l.apply(changed("a1", unmarked))
		}},
		{"a mark no entry named", witness.Unseen, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(silently(marked("a1", cluster.MarkPaced)))
			l.w.Audit(l.now)
		}},
		{"a drain no entry named", witness.Unseen, func(l *log) {
			l.apply(silently(drained("n1", cluster.DrainSpec{})))
			l.w.Audit(l.now)
		}},
		{"an ended drain that runs again without an entry", witness.Unseen, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0))
			l.apply(silently(drained("n1", cluster.DrainSpec{})))
			l.w.Audit(l.now)
		}},
		{"an end no entry named", witness.Unseen, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(silently(ended("n1", cluster.OutcomeCancelled, 0)))
			l.w.Audit(l.now)
		}},
		{"the end of a drain no entry started", witness.Unseen, func(l *log) {
			l.apply(silently(drained("n1", cluster.DrainSpec{})))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0))
		}},
	}
	has := map[witness.Kind]bool{}
	for _, c := range slices.Concat(cases, wrongConfirmations(), wrongData(), wrongSurges()) {
		has[c.kind] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := web(1)
			c.run(l)
			l.checkResumed(t)
			report := l.w.Report()
			must.SliceLen(t, 1, report.Findings, must.Sprint(report.Findings))
			f := report.Findings[0]
			must.Eq(t, c.kind, f.Kind, must.Sprint(f))
			must.StrHasPrefix(t, f.Kind.Guarantee()+" "+f.Kind.String(), f.String())
			must.NotEq(t, "", f.Why)
			must.False(t, report.Clean())
		})
	}
	for kind := range witness.Unseen + 1 {
		must.True(t, has[kind], must.Sprint(kind))
	}
}

// Cases that only resemble violations give no findings.
func TestWitness_acceptsValidEntries(t *testing.T) {
	t.Parallel()
	deadline := cluster.DrainSpec{Deadline: time.Minute}
	cases := []history{
		{"a paced mark before a deadline mark of the same entry", func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}), drained("n2", deadline))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkPaced), marked("a3", cluster.MarkDeadline))
		}},
		{"free marks below the limit", func(l *log) {
			l.apply(changed("a1", pending), changed("a2", pending))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkFree), marked("a2", cluster.MarkFree))
		}},
		{"a mark without a drain", func(l *log) {
			l.apply(changed("a1", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true }))
		}},
		{"a free mark at the healthy deadline", func(l *log) {
			l.apply(changed("a1", unhealthySince(epoch)), drained("n1", cluster.DrainSpec{}))
			l.at = epoch.Add(cluster.DefaultHealthyDeadline)
			l.apply(marked("a1", cluster.MarkFree))
		}},
		{"a free mark planned against an older revision, and its evaluation", func(l *log) {
			l.apply(changed("a1", pending), drained("n1", cluster.DrainSpec{}))
			l.plan([]witness.Planned{{Alloc: "a1", Node: "n1", Revision: 2}}, marked("a1", cluster.MarkFree), evaluated("web", l.index+1))
		}},
		{"a mark exactly at the deadline", func(l *log) {
			l.apply(drained("n1", deadline))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline))
		}},
		{"a system allocation when the stop time of a consumer ends", func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), drained("n1", cluster.DrainSpec{Deadline: -1}))
			l.apply(alloc("s1", "logs", "n1"))
			l.apply(marked("a1", cluster.MarkForced), marked("a2", cluster.MarkForced))
			l.at = epoch.Add(5*time.Second + margin)
			l.apply(marked("s1", cluster.MarkForced))
		}},
		{"a system allocation when the volumes of a consumer must be off", func(l *log) {
			l.apply(volumesForced()...)
			l.apply(marked("d1", cluster.MarkForced))
			l.at = epoch.Add(5*time.Second + time.Minute + margin)
			l.apply(marked("s1", cluster.MarkForced))
		}},
		{"the end of a drain when the hold of a storage plugin is over", func(l *log) {
			l.apply(heldPlugin()...)
			l.apply(marked("p1", cluster.MarkForced))
			l.at = epoch.Add(5*time.Second + 10*time.Minute + margin)
			l.apply(ended("n1", cluster.OutcomeForced, 1))
		}},
		{"an end at the deadline with a disconnected node", func(l *log) {
			l.apply(drained("n1", deadline), changed("a1", unknown), changed("a2", unknown))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline), marked("a2", cluster.MarkDeadline))
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 2))
		}},
		{"an end at the deadline with a node that is down", func(l *log) {
			l.apply(drained("n1", deadline), node("n1", func(n *cluster.Node) { n.Status = cluster.NodeDown }))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline), marked("a2", cluster.MarkDeadline))
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 2))
		}},
		{"an end after the stop time of an allocation without a mark", func(l *log) {
			l.apply(drained("n1", deadline), changed("a1", stopped))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a2", cluster.MarkDeadline))
			l.apply(changed("a2", stopped), alloc("z1", "web", "n1", func(a *cluster.Allocation) {
				a.DesiredStatus, a.StoppedAt = cluster.DesiredStop, epoch.Add(2*time.Minute)
			}))
			l.at = epoch.Add(2*time.Minute + 5*time.Second + margin)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 1))
		}},
		{"deadline reached without a deadline mark, with an allocation left", func(l *log) {
			l.apply(changed("a1", pending), drained("n1", deadline))
			l.apply(marked("a1", cluster.MarkFree), changed("a2", stopped))
			l.at = epoch.Add(time.Hour)
			l.apply(ended("n1", cluster.OutcomeDeadlineReached, 1))
		}},
		{"an excluded system allocation", func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), pluginJob("csi", cluster.JobSystem, 1))
			l.apply(drained("n1", cluster.DrainSpec{IgnoreSystemJobs: true}), alloc("s1", "logs", "n1"), alloc("p1", "csi", "n1"))
			l.apply(changed("a1", stopped), changed("a2", stopped))
			l.apply(marked("p1", cluster.MarkStage))
			l.apply(changed("p1", stopped))
			l.apply(ended("n1", cluster.OutcomeComplete, 0))
		}},
		{"a node deleted during its drain", func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeNodeGone, 2), noNode("n1"))
		}},
		{"a cancelled drain, its mark withdrawn, and the next one", func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0), changed("a1", unmarked))
			l.apply(drained("n1", cluster.DrainSpec{}), node("n1", func(n *cluster.Node) { n.Drain.ID = "second" }))
		}},
		{"two system allocations one after the other", func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), drained("n1", cluster.DrainSpec{}))
			l.apply(alloc("s1", "logs", "n1"), alloc("s2", "logs", "n1"), changed("a1", stopped), changed("a2", stopped))
			l.apply(marked("s1", cluster.MarkStage))
			l.apply(marked("s2", cluster.MarkStage))
		}},
		{"a job stopped", func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(job("web", cluster.JobService, 3, 1), func(w *world, _ time.Time, _ *witness.Touched) {
				w.jobs[key("web").Job].Stop = true
			})
			l.apply(marked("a1", cluster.MarkPaced), marked("a2", cluster.MarkPaced))
		}},
		{"a group without a migrate block", func(l *log) {
			l.apply(job("web", cluster.JobService, 3, 0), func(w *world, _ time.Time, _ *witness.Touched) {
				w.jobs[key("web").Job].TaskGroups[0].Migrate = nil
			})
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a job scaled down", func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(job("web", cluster.JobService, 2, 1))
			l.apply(marked("a1", cluster.MarkPaced), marked("a2", cluster.MarkPaced))
		}},
	}
	for _, c := range append(cases, validData()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := web(1)
			c.run(l)
			l.checkResumed(t)
			l.w.Audit(l.now)
			must.SliceEmpty(t, l.w.Report().Findings)
		})
	}
}

// The report counts moved, stopped and withdrawn marks separately.
func TestWitness_countsResultsOfMarks(t *testing.T) {
	t.Parallel()
	l := web(3)
	l.apply(drained("n1", cluster.DrainSpec{}), drained("n2", cluster.DrainSpec{}))
	l.apply(alloc("a4", "web", "n1"), alloc("a5", "web", "n1"))
	for _, id := range []cluster.AllocID{"a1", "a2", "a4", "a5"} {
		l.apply(marked(id, cluster.MarkFree))
	}
	l.apply(changed("a1", stopped))
	l.apply(replaced("a1", "b1", "n2")) // moved
	l.apply(changed("a2", stopped))     // stopped: nothing in its place
	l.apply(changed("a4", unmarked))    // withdrawn
	l.apply(purged("a5"))               // stopped: its record is gone
	drains := l.w.Report().Drains
	must.SliceLen(t, 2, drains)
	must.Eq(t, cluster.DrainID("dn1"), drains[0].ID)
	must.Eq(t, [3]int{1, 2, 1}, [3]int{drains[0].Moved, drains[0].Stopped, drains[0].Withdrawn})
	must.Eq(t, [3]int{0, 0, 0}, [3]int{drains[1].Moved, drains[1].Stopped, drains[1].Withdrawn})
}

// The options change the rules.
func TestWitness_options(t *testing.T) {
	t.Parallel()
	run := func(o witness.Options, meanwhile ...edit) []witness.Finding {
		o.StopMargin = margin
		l := newLog(o)
		l.apply(node("n1", ready), job("web", cluster.JobService, 1, 1), pluginJob("csi", cluster.JobSystem, 1))
		l.apply(alloc("a1", "web", "n1"), alloc("p1", "csi", "n1"), drained("n1", cluster.DrainSpec{Deadline: -1}))
		l.apply(marked("a1", cluster.MarkForced))
		l.apply(meanwhile...)
		l.at = epoch.Add(time.Hour)
		l.apply(marked("p1", cluster.MarkForced))
		l.apply(ended("n1", cluster.OutcomeForced, 2))
		return l.w.Report().Findings
	}
	kinds := func(findings []witness.Finding) (kinds []witness.Kind) {
		for _, f := range findings {
			kinds = append(kinds, f.Kind)
		}
		return kinds
	}
	must.Eq(t, []witness.Kind{witness.EndedEarly}, kinds(run(witness.Options{})))
	must.SliceEmpty(t, run(witness.Options{MarkedIsComplete: true}))
	must.Eq(t, []witness.Kind{witness.OutOfTurn}, kinds(run(witness.Options{MarkedIsComplete: true, PluginsAfterStop: true})))
	must.SliceEmpty(t, run(witness.Options{MarkedIsComplete: true, PluginsAfterStop: true}, changed("a1", unknown)))
}

// Findings are kept up to their bound and counted beyond it.
func TestWitness_boundsItsFindings(t *testing.T) {
	t.Parallel()
	l := newLog(witness.Options{MaxFindings: 2})
	l.apply(node("n1", ready), job("web", cluster.JobService, 9, 9))
	for _, id := range []cluster.AllocID{"a1", "a2", "a3"} {
		l.apply(alloc(id, "web", "n1"))
		l.apply(marked(id, cluster.MarkPaced))
	}
	report := l.w.Report()
	must.SliceLen(t, 2, report.Findings)
	must.Eq(t, 3, report.Found)
}

// Damaged rows cause no panic.
func TestWitness_damagedRows(t *testing.T) {
	t.Parallel()
	l := web(1)
	l.apply(drained("n1", cluster.DrainSpec{Deadline: -1}))
	l.apply(job("odd", cluster.JobService, 1, 1), func(w *world, _ time.Time, _ *witness.Touched) {
		w.jobs[key("odd").Job].TaskGroups = []*cluster.TaskGroup{nil, {Name: "g", Tasks: []*cluster.Task{nil}}}
	})
	l.apply(alloc("o1", "odd", "n1"), alloc("o2", "none", "n1"), alloc("o3", "web", "nowhere"))
	l.apply(marked("o1", cluster.MarkForced), marked("o2", cluster.MarkForced), marked("a1", 200))
	l.at = epoch.Add(time.Hour)
	l.apply(ended("n1", cluster.OutcomeForced, 4))
	l.w.Audit(l.now)
	must.Eq(t, "G5 ended early at index 7, drain dn1, node n1, allocation a2: "+
		`the drain ended as "forced" while it still had to wait for 1 of its allocations`, l.w.Report().Findings[0].String())
}
