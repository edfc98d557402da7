package statestore_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestAMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 2))
	w.place(web, "n1", func(a *cluster.Allocation) { a.DesiredTransition.NoShutdownDelay = true }, "a1")
	w.place(web, "n1", nil, "a2")
	w.drain("n1", "d1", cluster.DrainSpec{})
	node := w.snap().Node("n1")

	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.ApplyMarks(w.now,
			[]rules.Mark{{Alloc: "a1", Group: cluster.GroupKey{Job: web.Key(), Name: "g"}, Node: "n1", Drain: "d1", Class: cluster.MarkPaced}},
			[]*cluster.Evaluation{{ID: "e1", Namespace: "default", JobID: "web", Status: cluster.EvalPending, TriggeredBy: cluster.TriggerNodeDrain}},
		))
	})
	a := w.snap().Alloc("a1")
	must.Eq(t, cluster.DesiredTransition{
		Migrate: true, NoShutdownDelay: true, Drain: "d1", Class: cluster.MarkPaced, MarkedAt: w.now.UTC(),
	}, a.DesiredTransition)
	must.Eq(t, w.index, a.ModifyIndex)
	must.Eq(t, w.index, a.AllocModifyIndex)
	must.Eq(t, w.now.UTC(), a.ModifyTime)
	must.Eq(t, []cluster.EvalID{"e1"}, evalIDs(w.snap().WorkView().OpenEvals(web.Key())))

	n := w.snap().Node("n1")
	must.Eq(t, 1, n.Drain.Marked[cluster.MarkPaced])
	must.Eq(t, node.Drain.Revision, n.Drain.Revision)
	must.Eq(t, node.Drain.UpdatedAt, n.Drain.UpdatedAt)
	must.Eq(t, node.Events, n.Events)
	must.Eq(t, w.index, n.ModifyIndex)
	must.Eq(t, []cluster.AllocID{"a1"}, allocIDs(w.snap().DrainView().DrainAllocs("d1")))
	must.Eq(t, []cluster.AllocID{"a1"}, allocIDs(w.snap().DrainView().NodeAllocs("n1", cluster.StageConsumers, true)))
	must.Eq(t, []cluster.AllocID{"a2"}, allocIDs(w.snap().DrainView().NodeAllocs("n1", cluster.StageConsumers, false)))
	must.Eq(t, 2, w.snap().DrainView().Consumers("n1"))
}

func TestADeadlineMarkDisablesPlacement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	jobs := map[cluster.AllocID]*cluster.Job{
		"service":  serviceJob("service", 9),
		"batch":    job("batch", cluster.JobBatch, 9),
		"sysbatch": job("sysbatch", cluster.JobSysBatch, 9),
	}
	for _, class := range []cluster.MarkClass{cluster.MarkDeadline, cluster.MarkForced, cluster.MarkGone} {
		for id, j := range jobs {
			w.job(j)
			w.place(j, "n1", nil, string(id)+class.String())
		}
	}
	w.drain("n1", "d1", cluster.DrainSpec{Deadline: -1})
	for _, class := range []cluster.MarkClass{cluster.MarkDeadline, cluster.MarkForced, cluster.MarkGone} {
		for id := range jobs {
			marked := id + cluster.AllocID(class.String())
			w.mark(class, marked)
			must.Eq(t, id == "batch" && class != cluster.MarkGone, w.snap().Alloc(marked).DesiredTransition.MigrateDisablePlacement, must.Sprint(marked))
		}
	}
}

func TestInvalidMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	web := w.job(serviceJob("web", 9))
	w.place(web, "n1", nil, "ended", "good", "stopping")
	w.place(web, "n1", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true }, "by hand")
	w.place(web, "n2", nil, "not draining")
	w.place(web, "no node", nil, "nowhere")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.stop("stopping")
	w.report(cluster.ClientComplete, "ended")
	before := dump(t, w.snap())

	var marks []rules.Mark
	add := func(id cluster.AllocID, n cluster.NodeID, d cluster.DrainID, c cluster.MarkClass) {
		marks = append(marks, rules.Mark{Alloc: id, Node: n, Drain: d, Class: c})
	}
	add("unknown", "n1", "d1", cluster.MarkPaced)
	add("", "n1", "d1", cluster.MarkPaced)
	add("ended", "n1", "d1", cluster.MarkPaced)
	add("stopping", "n1", "d1", cluster.MarkPaced)
	add("by hand", "n1", "d1", cluster.MarkPaced)
	add("not draining", "n2", "", cluster.MarkPaced)
	add("nowhere", "no node", "", cluster.MarkPaced)
	add("good", "n1", "another", cluster.MarkPaced)
	add("good", "n1", "d1", cluster.MarkNone)
	add("good", "n1", "d1", cluster.MarkClassCount)
	txn := w.store.Begin(w.index)
	must.NoError(t, txn.ApplyMarks(w.now, marks, nil))
	txn.Commit()
	must.Eq(t, before, dump(t, w.snap()))

	marks = nil
	add("good", "n1", "d1", cluster.MarkFree)
	add("good", "n1", "d1", cluster.MarkPaced)
	w.write(func(x *statestore.Txn) { must.NoError(t, x.ApplyMarks(w.now, marks, nil)) })
	must.Eq(t, cluster.MarkFree, w.snap().Alloc("good").DesiredTransition.Class)
	must.Eq(t, [cluster.MarkClassCount]int{cluster.MarkFree: 1}, w.snap().Node("n1").Drain.Marked)
}
