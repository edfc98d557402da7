package witness_test

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

func wrongData() []violation {
	return []violation{
		{"a drain that does not wait for data", witness.EndedEarly, func(l *log) {
			keptOnN1(l)
			l.apply(ended("n1", cluster.OutcomeComplete, 0), countsData("a1"))
		}},
		{"data that was given up and is not counted", witness.MiscountedData, func(l *log) {
			keptOnN1(l)
			l.apply(changed("a1", dataOut(cluster.DataGivenUp)), changed("r1", dataIn(cluster.DataGivenUp)))
			l.apply(ended("n1", cluster.OutcomeComplete, 0))
		}},
		{"data that was copied and is counted", witness.MiscountedData, func(l *log) {
			keptOnN1(l)
			l.apply(changed("a1", dataOut(cluster.DataCopied)), changed("r1", dataIn(cluster.DataCopied)))
			l.apply(ended("n1", cluster.OutcomeComplete, 0), countsData("a1"))
		}},
		{"the only copy, in a slot that the scheduler has given up, that is not counted", witness.MiscountedData, func(l *log) {
			l.apply(job("web", cluster.JobService, 3, 3), func(w *world, _ time.Time, _ *witness.Touched) {
				w.jobs[key("web").Job].TaskGroups[0].EphemeralDisk.Migrate = true
			})
			l.apply(changed("a1", dataOut(cluster.DataKept), func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientFailed }), changed("a2", stopped))
			l.apply(drained("n1", cluster.DrainSpec{}))
			l.apply(ended("n1", cluster.OutcomeComplete, 0))
		}},
		{"data of an older cluster version that is counted", witness.MiscountedData, func(l *log) {
			l.now.version = 8
			keptOnN1(l)
			l.apply(changed("a1", dataOut(cluster.DataGivenUp)))
			l.apply(ended("n1", cluster.OutcomeComplete, 0), countsData("a1"))
		}},
		{"the data on a deleted node that is not counted", witness.MiscountedData, func(l *log) {
			keptOnN1(l)
			l.apply(ended("n1", cluster.OutcomeNodeGone, 0), noNode("n1"))
		}},
	}
}

func validData() []history {
	return []history{
		{"a drain that ends when its data is copied", func(l *log) {
			keptOnN1(l)
			l.apply(changed("a1", dataOut(cluster.DataCopied)), changed("r1", dataIn(cluster.DataCopied)))
			l.apply(ended("n1", cluster.OutcomeComplete, 0))
		}},
		{"data that no client takes, because the replacement has started", func(l *log) {
			keptOnN1(l)
			l.apply(changed("r1", running, func(a *cluster.Allocation) { a.DataIn = nil }))
			l.apply(ended("n1", cluster.OutcomeComplete, 0), countsData("a1"))
		}},
		{"data on a node that is down", func(l *log) {
			keptOnN1(l)
			l.apply(node("n1", func(n *cluster.Node) { n.Status = cluster.NodeDown }))
			l.apply(ended("n1", cluster.OutcomeComplete, 0), countsData("a1"))
		}},
	}
}

// keptOnN1 drains n1. Its allocations have ended, and the client keeps the data of a1, which r1 waits for.
func keptOnN1(l *log) {
	l.apply(job("web", cluster.JobService, 3, 3), func(w *world, _ time.Time, _ *witness.Touched) {
		w.jobs[key("web").Job].TaskGroups[0].EphemeralDisk.Migrate = true
	})
	l.apply(drained("n1", cluster.DrainSpec{}), changed("a2", stopped))
	l.apply(marked("a1", cluster.MarkPaced), evaluated("web", l.index+1))
	l.apply(replaced("a1", "r1", "n2"))
	l.apply(changed("a1", stopped, dataOut(cluster.DataKept)), changed("r1", dataIn(cluster.DataWaiting)))
}

func dataIn(s cluster.DataState) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) { a.DataIn = &cluster.DataMove{State: s} }
}

func dataOut(s cluster.DataState) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) { a.DataOut = &cluster.DataMove{State: s} }
}

// countsData lets the record of the drain of n1 count the data of these allocations as not copied.
func countsData(ids ...cluster.AllocID) edit {
	return func(w *world, _ time.Time, _ *witness.Touched) {
		w.records["dn1"].DataNotCopied = &cluster.DataNotCopied{Count: len(ids), Allocs: ids}
	}
}
