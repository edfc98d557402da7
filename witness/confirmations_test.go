package witness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// lost gives an allocation up, while its node is away.
func lost(id cluster.AllocID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		changed(id, func(a *cluster.Allocation) {
			a.ClientStatus, a.DesiredStatus, a.AwaySince, a.AllocModifyIndex = cluster.ClientLost, cluster.DesiredStop, now, w.index
		})(w, now, touched)
	}
}

func away(id cluster.NodeID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		node(id, func(n *cluster.Node) { n.Status, n.AwaySince = cluster.NodeDown, now })(w, now, touched)
	}
}

func back(id cluster.NodeID) edit {
	return node(id, func(n *cluster.Node) { n.Status, n.AwaySince = cluster.NodeReady, time.Time{} })
}

// confirmed confirms the end of an allocation at the time of the entry.
func confirmed(id cluster.AllocID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		changed(id, func(a *cluster.Allocation) { a.ConfirmedAt = now })(w, now, touched)
	}
}

// stopsAway sets stop_on_client_after of a job to ten minutes.
func stopsAway(id cluster.JobID) edit {
	return func(w *world, _ time.Time, _ *witness.Touched) {
		w.jobs[key(id).Job].TaskGroups[0].Disconnect.StopOnClientAfter = 10 * time.Minute
	}
}

// endedWith ends the drain of a node, with a record that counts allocations.
func endedWith(id cluster.NodeID, outcome cluster.Outcome, count int, names ...cluster.AllocID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		ended(id, outcome, 0)(w, now, touched)
		w.records[drainOf(id)].Unconfirmed = &cluster.UnconfirmedAllocs{Count: count, Allocs: names}
	}
}

// reports writes the unlisted allocations that a node reports.
func reports(id cluster.NodeID, unlisted ...cluster.AllocID) edit {
	return node(id, func(n *cluster.Node) { n.Unlisted = cluster.NewUnlistedAllocs(unlisted) })
}

// unlistedEnd ends a drain of n1 whose client runs two allocations that the servers do not list.
func unlistedEnd(l *log) {
	l.apply(changed("a1", stopped), changed("a2", stopped))
	l.apply(reports("n1", "old1", "old2"))
	l.apply(drained("n1", cluster.DrainSpec{}))
	l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 2), counts("n1", unlistedLeft("old1", "old2")))
}

// unlistedLeft sets the unlisted allocations of a record that counts no others.
func unlistedLeft(ids ...cluster.AllocID) func(*cluster.UnconfirmedAllocs, time.Time) {
	return func(u *cluster.UnconfirmedAllocs, now time.Time) {
		u.Count, u.Unlisted = len(ids), cluster.NewUnlistedAllocs(ids)
		if len(ids) == 0 {
			u.Unlisted, u.ConfirmedAt = nil, now
		}
	}
}

// counts changes the count of the record of a node's drain.
func counts(id cluster.NodeID, change func(*cluster.UnconfirmedAllocs, time.Time)) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		record := w.records[drainOf(id)].Copy()
		u := *record.Unconfirmed
		change(&u, now)
		record.Unconfirmed = &u
		w.records[record.ID] = record
		touched.Nodes = append(touched.Nodes, id)
	}
}

func zero(u *cluster.UnconfirmedAllocs, now time.Time) {
	u.Count, u.Allocs, u.ConfirmedAt = 0, nil, now
}

func byOperator(u *cluster.UnconfirmedAllocs, now time.Time) {
	zero(u, now)
	u.ConfirmedBy = "ada"
}

// unconfirmedEnd ends a drain of n1 whose record counts a1. a2 was complete.
func unconfirmedEnd(l *log) {
	l.apply(stopsAway("web"), away("n1"))
	l.apply(lost("a1"), changed("a2", stopped))
	l.apply(drained("n1", cluster.DrainSpec{}))
	l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 1, "a1"))
}

// inTime is when the node has stopped a1 of unconfirmedEnd by itself.
var inTime = epoch.Add(10*time.Minute + 5*time.Second + time.Minute)

func wrongConfirmations() []violation {
	return []violation{
		{"a complete drain with a lost allocation", witness.UntrueOutcome, func(l *log) {
			l.apply(lost("a1"), changed("a2", stopped))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeComplete, 1, "a1"))
		}},
		{"an unconfirmed drain without an unconfirmed allocation", witness.UntrueOutcome, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(changed("a1", stopped), changed("a2", stopped))
			l.apply(ended("n1", cluster.OutcomeUnconfirmed, 0))
		}},
		{"an outcome that changes when the node reports", witness.UntrueOutcome, func(l *log) {
			unconfirmedEnd(l)
			l.apply(changed("a1", stopped), counts("n1", zero), func(w *world, _ time.Time, _ *witness.Touched) {
				w.records["dn1"].Outcome = cluster.OutcomeComplete
			})
		}},
		{"an allocation that was lost before the drain and is not counted", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(lost("a1"), lost("a2"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 1, "a2"))
		}},
		{"a system allocation that was left by request and is counted", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(job("logs", cluster.JobSystem, 1, 0), alloc("s1", "logs", "n1"), changed("a1", stopped), changed("a2", stopped))
			l.apply(drained("n1", cluster.DrainSpec{IgnoreSystemJobs: true}))
			l.apply(lost("s1"))
			l.apply(endedWith("n1", cluster.OutcomeComplete, 1, "s1"))
		}},
		{"a cancelled drain that counts no lost allocation", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(lost("a1"))
			l.source = witness.Operator
			l.apply(ended("n1", cluster.OutcomeCancelled, 0))
		}},
		{"a record that names another allocation", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(lost("a1"), changed("a2", stopped))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 1, "a2"))
		}},
		{"an entry of the drainer that confirms by the clock of the leader", witness.ConfirmedEarly, func(l *log) {
			l.apply(stopsAway("web"), away("n1"))
			l.apply(lost("a1"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.at = inTime
			l.source = witness.Drainer
			l.apply(confirmed("a1"))
		}},
		{"a report that does not lower the count", witness.MiscountedUnconfirmed, func(l *log) {
			unconfirmedEnd(l)
			l.apply(changed("a1", stopped))
		}},
		{"a count that falls twice", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(lost("a1"), lost("a2"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 2, "a1", "a2"))
			l.apply(changed("a1", stopped), counts("n1", func(u *cluster.UnconfirmedAllocs, now time.Time) { zero(u, now) }))
		}},
		{"a report of a later loss that lowers the count", witness.MiscountedUnconfirmed, func(l *log) {
			unconfirmedEnd(l)
			l.apply(alloc("later", "web", "n1"))
			l.apply(lost("later"))
			l.apply(changed("later", stopped), counts("n1", zero))
		}},
		{"a count that rises", witness.MiscountedUnconfirmed, func(l *log) {
			unconfirmedEnd(l)
			l.apply(counts("n1", func(u *cluster.UnconfirmedAllocs, _ time.Time) { u.Count++ }))
		}},
		{"a count of zero without the time of confirmation", witness.MiscountedUnconfirmed, func(l *log) {
			unconfirmedEnd(l)
			l.apply(changed("a1", stopped), counts("n1", func(u *cluster.UnconfirmedAllocs, _ time.Time) { zero(u, time.Time{}) }))
		}},
		{"a record that an operator confirms without a request", witness.MiscountedUnconfirmed, func(l *log) {
			unconfirmedEnd(l)
			l.source = witness.Other
			l.apply(counts("n1", byOperator))
		}},
		{"a record that names a confirmed allocation", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(lost("a1"), lost("a2"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 2, "a1", "a2"))
			l.apply(changed("a1", stopped), counts("n1", func(u *cluster.UnconfirmedAllocs, _ time.Time) { u.Count = 1 }))
		}},
		{"an allocation that is confirmed before its time", witness.ConfirmedEarly, func(l *log) {
			unconfirmedEnd(l)
			l.source, l.at = witness.Other, inTime.Add(-1)
			l.apply(confirmed("a1"), counts("n1", zero))
		}},
		{"an allocation that is confirmed although its node was back", witness.ConfirmedEarly, func(l *log) {
			unconfirmedEnd(l)
			l.source, l.at = witness.Other, epoch.Add(5*time.Minute)
			l.apply(back("n1"))
			l.at = l.at.Add(time.Second)
			l.apply(away("n1"))
			l.at = inTime
			l.apply(confirmed("a1"), counts("n1", zero))
		}},
		{"an allocation that time confirms while its node is reachable", witness.ConfirmedEarly, func(l *log) {
			unconfirmedEnd(l)
			l.source, l.at = witness.Other, inTime
			l.apply(back("n1"))
			l.apply(confirmed("a1"), counts("n1", zero))
		}},
		{"a lost allocation that runs again", witness.ConfirmedEarly, func(l *log) {
			l.apply(lost("a1"))
			l.apply(changed("a1", running))
		}},
		{"an allocation that is confirmed while it runs", witness.ConfirmedEarly, func(l *log) { l.apply(confirmed("a1")) }},
		{"a counted row that is collected", witness.CollectedCounted, func(l *log) {
			unconfirmedEnd(l)
			l.source = witness.Collection
			l.apply(purged("a1"))
		}},
		{"a purge that deletes a lost row", witness.DeletedRunning, func(l *log) {
			l.apply(lost("a1"))
			l.apply(purged("a1"))
		}},
		{"a collection that deletes a running row", witness.DeletedRunning, func(l *log) {
			l.source = witness.Collection
			l.apply(purged("a1"))
		}},
		{"a complete drain whose client runs what the servers do not list", witness.UntrueOutcome, func(l *log) {
			l.apply(changed("a1", stopped), changed("a2", stopped), reports("n1", "old"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeComplete, 1), counts("n1", unlistedLeft("old")))
		}},
		{"a record that names another unlisted allocation", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(changed("a1", stopped), changed("a2", stopped), reports("n1", "old"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 1), counts("n1", unlistedLeft("other")))
		}},
		{"a lost allocation that counts twice because its client reports it", witness.MiscountedUnconfirmed, func(l *log) {
			l.apply(lost("a1"), changed("a2", stopped), reports("n1", "a1"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 2, "a1"))
		}},
		{"a node that reports fewer and does not lower the count", witness.MiscountedUnconfirmed, func(l *log) {
			unlistedEnd(l)
			l.apply(reports("n1", "old1"))
		}},
		{"a count that falls although the node reports the same", witness.MiscountedUnconfirmed, func(l *log) {
			unlistedEnd(l)
			l.apply(reports("n1", "old1", "old2"), counts("n1", unlistedLeft("old1")))
		}},
		{"a count no entry named", witness.Unseen, func(l *log) {
			unconfirmedEnd(l)
			l.apply(silently(counts("n1", zero)))
			l.w.Audit(l.now)
		}},
	}
}

// Confirmations that only resemble violations give no findings.
func TestWitness_acceptsConfirmations(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(l *log){
		"the node returns": func(l *log) {
			unconfirmedEnd(l)
			l.apply(back("n1"))
			l.apply(changed("a1", stopped), counts("n1", zero))
		},
		"time confirms": func(l *log) {
			unconfirmedEnd(l)
			l.source, l.at = witness.Other, inTime
			l.apply(confirmed("a1"), counts("n1", zero))
			l.apply(changed("a1", stopped)) // a late report
		},
		"time confirms on a deleted node": func(l *log) {
			unconfirmedEnd(l)
			l.apply(noNode("n1"))
			l.source, l.at = witness.Other, inTime
			l.apply(confirmed("a1"), counts("n1", zero))
		},
		"an operator confirms": func(l *log) {
			unconfirmedEnd(l)
			l.source = witness.Operator
			l.apply(confirmed("a1"), counts("n1", byOperator))
		},
		"an operator confirms what was purged": func(l *log) {
			unconfirmedEnd(l)
			l.source, l.unversioned = witness.Other, true
			l.apply(purged("a1"))
			l.source = witness.Operator
			l.apply(counts("n1", byOperator))
		},
		"a counted row of a deleted node is collected": func(l *log) {
			unconfirmedEnd(l)
			l.apply(noNode("n1"))
			l.source = witness.Collection
			l.apply(purged("a1"))
		},
		"the node reports fewer unlisted allocations": func(l *log) {
			unlistedEnd(l)
			l.apply(reports("n1", "old2"), counts("n1", unlistedLeft("old2")))
			l.apply(reports("n1", "newer", "old2"))
			l.apply(reports("n1", "newer"), counts("n1", unlistedLeft()))
		},
		"a deleted node reports fewer when it registers again": func(l *log) {
			unlistedEnd(l)
			l.apply(noNode("n1"))
			l.apply(node("n1", ready), reports("n1", "old2"), counts("n1", unlistedLeft("old2")))
		},
		"an operator confirms unlisted allocations": func(l *log) {
			unlistedEnd(l)
			l.source = witness.Operator
			l.apply(counts("n1", unlistedLeft()), counts("n1", byOperator))
		},
		"the client reports a lost allocation": func(l *log) {
			l.apply(lost("a1"), changed("a2", stopped), reports("n1", "a1"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 1, "a1"))
		},
		"the drain ends when time has confirmed": func(l *log) {
			l.apply(stopsAway("web"), away("n1"))
			l.apply(lost("a1"), lost("a2"))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.at = inTime
			l.apply(confirmed("a1"), confirmed("a2"), ended("n1", cluster.OutcomeComplete, 0))
		},
		"a lost allocation is purged during the drain": func(l *log) {
			l.unversioned = true
			l.apply(lost("a1"), changed("a2", stopped))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(purged("a1"), node("n1", func(n *cluster.Node) { n.Drain.PurgedRunning++ }))
			l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 1))
		},
		"a deadline reached with a lost allocation": func(l *log) {
			l.apply(drained("n1", cluster.DrainSpec{Deadline: time.Minute}))
			l.at = epoch.Add(time.Minute)
			l.apply(marked("a1", cluster.MarkDeadline), changed("a2", stopped))
			l.apply(lost("a1"))
			l.apply(endedWith("n1", cluster.OutcomeDeadlineReached, 1, "a1"))
		},
		"a cluster version without the count": func(l *log) {
			l.now.version = 7
			l.apply(lost("a1"), changed("a2", stopped))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeComplete, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := web(1)
			run(l)
			l.w.Audit(l.now)
			l.checkResumed(t)
			must.SliceEmpty(t, l.w.Report().Findings)
		})
	}
}

// With the policy "marked" a drain is complete although nothing confirms a lost allocation.
func TestWitness_markedIsCompleteUnconfirmed(t *testing.T) {
	t.Parallel()
	l := newLog(witness.Options{MarkedIsComplete: true})
	l.apply(node("n1", ready), job("web", cluster.JobService, 1, 1), alloc("a1", "web", "n1"))
	l.apply(lost("a1"))
	l.apply(drained("n1", cluster.DrainSpec{}))
	l.apply(endedWith("n1", cluster.OutcomeComplete, 1, "a1"))
	must.SliceEmpty(t, l.w.Report().Findings)
	must.EqOp(t, 1, l.w.Report().Drains[0].Unconfirmed)
	l.apply(changed("a1", stopped), counts("n1", zero))
	must.SliceEmpty(t, l.w.Report().Findings)
	must.EqOp(t, 0, l.w.Report().Drains[0].Unconfirmed)
}

// A record names the first 20 unconfirmed allocations.
func TestWitness_namesTwenty(t *testing.T) {
	t.Parallel()
	l := newLog(witness.Options{})
	edits, ids := []edit{node("n1", ready), job("web", cluster.JobService, 25, 1)}, []cluster.AllocID{}
	for i := range 25 {
		ids = append(ids, cluster.AllocID(fmt.Sprintf("a%02d", i)))
		edits = append(edits, alloc(ids[i], "web", "n1"), lost(ids[i]))
	}
	l.apply(edits...)
	l.apply(drained("n1", cluster.DrainSpec{}))
	l.apply(endedWith("n1", cluster.OutcomeUnconfirmed, 25, ids[:20]...))
	must.SliceEmpty(t, l.w.Report().Findings)
}
