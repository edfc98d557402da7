package witness_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// surge gives the group of the job another max_surge.
func surge(id cluster.JobID, count, maxParallel, maxSurge int) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		job(id, cluster.JobService, count, maxParallel)(w, now, touched)
		w.jobs[key(id).Job].TaskGroups[0].Migrate.MaxSurge = maxSurge
	}
}

// requested requests a replacement of an allocation for the drain of its node.
func requested(id cluster.AllocID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		changed(id, func(a *cluster.Allocation) {
			a.DesiredTransition.Surge, a.DesiredTransition.SurgeAt = drainOf(a.NodeID), now
		})(w, now, touched)
	}
}

// stoodBy places an allocation that stands by another one.
func stoodBy(id, by cluster.AllocID, on cluster.NodeID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		changed(id, func(a *cluster.Allocation) { a.NextAllocation = by })(w, now, touched)
		alloc(by, w.allocs[id].JobID, on, pending, func(a *cluster.Allocation) { a.PreviousAllocation, a.Standby = id, true })(w, now, touched)
	}
}

// moved marks an allocation after its request. The allocations that stood by it do so no more.
func moved(id cluster.AllocID, active ...cluster.AllocID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		was := w.allocs[id].DesiredTransition
		marked(id, cluster.MarkPaced)(w, now, touched)
		changed(id, func(a *cluster.Allocation) {
			a.DesiredTransition.Surge, a.DesiredTransition.SurgeAt = was.Surge, was.SurgeAt
		})(w, now, touched)
		for _, next := range active {
			changed(next, activated)(w, now, touched)
		}
	}
}

func activated(a *cluster.Allocation) { a.Standby = false }

func withoutSurge(a *cluster.Allocation) {
	a.DesiredTransition.Surge, a.DesiredTransition.SurgeAt = "", time.Time{}
}

func wrongSurges() []violation {
	begin := func(l *log, maxSurge int) { l.apply(surge("web", 3, 1, maxSurge), drained("n1", cluster.DrainSpec{})) }
	return []violation{
		{"a paced mark without a request", witness.NotReplaced, func(l *log) {
			begin(l, 1)
			l.apply(marked("a1", cluster.MarkPaced))
		}},
		{"a paced mark before the replacement is placed", witness.NotReplaced, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"))
			l.apply(moved("a1"))
		}},
		{"a paced mark before the replacement is healthy", witness.NotReplaced, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"))
			l.apply(stoodBy("a1", "b1", "n2"))
			l.apply(moved("a1", "b1"))
		}},
		{"a paced mark after the replacement has become unhealthy, by the max_surge of the drain", witness.NotReplaced, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{MaxSurge: 1}))
			l.apply(requested("a1"))
			l.apply(stoodBy("a1", "b1", "n2"))
			l.apply(changed("b1", running))
			l.apply(changed("b1", unhealthySince(epoch)))
			l.apply(moved("a1", "b1"))
		}},
		{"a second request where one is permitted", witness.TooManySurges, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"))
			l.apply(requested("a2"))
		}},
		{"two requests of an entry where one is permitted", witness.TooManySurges, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"), requested("a2"))
		}},
		{"a second mark after a request before the plan", witness.TooManySurges, func(l *log) {
			begin(l, 2)
			l.apply(requested("a1"), requested("a2"))
			l.apply(stoodBy("a1", "b1", "n2"), stoodBy("a2", "b2", "n2"))
			l.apply(changed("b1", running), changed("b2", running))
			l.apply(moved("a1", "b1"))
			l.apply(moved("a2", "b2"))
		}},
		{"an allocation that stands by one that has ended", witness.WrongStandby, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"))
			l.apply(stoodBy("a1", "b1", "n2"))
			l.apply(changed("a1", stopped), changed("b1"))
		}},
		{"an allocation that stands by no more, beside one in place", witness.WrongStandby, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"))
			l.apply(stoodBy("a1", "b1", "n2"))
			l.apply(changed("b1", activated))
		}},
		{"an allocation that stands by without a request", witness.WrongStandby, func(l *log) {
			begin(l, 1)
			l.apply(stoodBy("a1", "b1", "n2"))
		}},
		{"an allocation that begins to stand by", witness.WrongStandby, func(l *log) {
			l.apply(changed("a3", func(a *cluster.Allocation) { a.Standby = true }))
		}},
		{"a request on a node that does not drain", witness.WrongRequest, func(l *log) {
			l.apply(surge("web", 3, 1, 1))
			l.apply(requested("a1"))
		}},
		{"a request in a group without a max_surge", witness.WrongRequest, func(l *log) {
			begin(l, 0)
			l.apply(requested("a1"))
		}},
		{"a request of an unhealthy allocation", witness.WrongRequest, func(l *log) {
			begin(l, 1)
			l.apply(changed("a1", pending))
			l.apply(requested("a1"))
		}},
		{"a request after the deadline", witness.WrongRequest, func(l *log) {
			l.apply(surge("web", 3, 1, 1), drained("n1", cluster.DrainSpec{Deadline: time.Minute}))
			l.at = l.at.Add(time.Minute)
			l.apply(requested("a1"))
		}},
		{"a request that its drain withdraws", witness.WrongRequest, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"))
			l.apply(changed("a1", withoutSurge))
		}},
		{"a request that a cancel leaves", witness.NotWithdrawn, func(l *log) {
			begin(l, 1)
			l.apply(requested("a1"))
			l.apply(ended("n1", cluster.OutcomeCancelled, 0))
		}},
		{"a free mark on a healthy allocation that stands by", witness.NotFree, func(l *log) {
			begin(l, 1)
			l.apply(drained("n2", cluster.DrainSpec{}))
			l.apply(requested("a1"))
			l.apply(stoodBy("a1", "b1", "n2"))
			l.apply(changed("b1", running))
			l.apply(marked("b1", cluster.MarkFree))
		}},
	}
}

// A correct surge has no findings. Neither has one whose cancel withdraws the requests.
func TestWitness_acceptsSurges(t *testing.T) {
	t.Parallel()
	l := web(1)
	l.apply(surge("web", 3, 1, 2), drained("n1", cluster.DrainSpec{}))
	l.apply(requested("a1"), requested("a2"))
	l.apply(stoodBy("a1", "b1", "n2"), stoodBy("a2", "b2", "n2"))
	l.apply(changed("b1", running))
	l.apply(moved("a1", "b1"))
	must.Eq(t, 3, l.w.Level(key("web")).Healthy)
	l.apply(changed("a1", func(a *cluster.Allocation) { a.DesiredStatus = cluster.DesiredStop }))
	l.apply(changed("a1", stopped), changed("b2", running))
	l.apply(changed("a2", withoutSurge), ended("n1", cluster.OutcomeCancelled, 0))
	l.apply(changed("b2", func(a *cluster.Allocation) { a.DesiredStatus = cluster.DesiredStop }), changed("a2", func(a *cluster.Allocation) { a.NextAllocation = "" }))
	report := l.w.Report()
	must.SliceEmpty(t, report.Findings)
	must.Eq(t, 3, report.Groups[0].Lowest.Healthy)
}
