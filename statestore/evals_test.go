package statestore_test

import (
	"math"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestEvaluations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	eval := func(id cluster.EvalID, job cluster.JobID, s cluster.EvalStatus, priority int) *cluster.Evaluation {
		return &cluster.Evaluation{ID: id, Namespace: "default", JobID: job, Status: s, Priority: priority, CreateTime: w.now}
	}
	for _, evals := range [][]*cluster.Evaluation{
		{eval("z", "web", cluster.EvalPending, 50)},
		{eval("b", "web", cluster.EvalPending, 50), eval("a", "web", cluster.EvalBlocked, 50)},
		{eval("c", "db", cluster.EvalPending, 90), eval("d", "db", cluster.EvalPending, -3), eval("e", "db", cluster.EvalBlocked, math.MaxInt)},
		{eval("f", "web", cluster.EvalComplete, 50)},
	} {
		w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertEvals(evals)) })
	}
	s := w.snap()
	must.Eq(t, []cluster.EvalID{"c", "z", "b", "d"}, evalIDs(s.WorkView().PendingEvals()))
	must.Eq(t, []cluster.EvalID{"e", "a"}, evalIDs(s.WorkView().BlockedEvals()))
	must.Eq(t, []cluster.EvalID{"z", "a", "b"}, evalIDs(s.WorkView().OpenEvals(cluster.JobKey{Namespace: "default", ID: "web"})))
	must.Eq(t, []cluster.EvalID{"z", "a", "b", "f"}, evalIDs(s.EvalsByJob(cluster.JobKey{Namespace: "default", ID: "web"})))
	must.Eq(t, []cluster.EvalID{"a", "b", "c", "d", "e", "f", "z"}, evalIDs(s.Evals()))
	must.Eq(t, time.UTC, s.Eval("a").CreateTime.Location())

	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.UpsertEvals([]*cluster.Evaluation{eval("z", "web", cluster.EvalComplete, 50)}))
	})
	must.Eq(t, 1, w.snap().Eval("z").CreateIndex)
	must.Eq(t, w.index, w.snap().Eval("z").ModifyIndex)
	must.Eq(t, []cluster.EvalID{"c", "b", "d"}, evalIDs(w.snap().WorkView().PendingEvals()))
}

func TestOneBadEvaluationDoesNotFailABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) {
		err := x.UpsertEvals([]*cluster.Evaluation{nil, {ID: "e1"}, {}})
		must.ErrorContains(t, err, "evaluation 0")
		must.ErrorContains(t, err, "evaluation 2")
	})
	must.Eq(t, []cluster.EvalID{"e1"}, evalIDs(w.snap().Evals()))
}
