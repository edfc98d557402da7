package shims_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// The FSM deletes unneeded rows, and answers with them. The job is stopped: two of its allocations
// have ended, and the third has not stopped yet. A server that restores a snapshot from after the
// entry has the same state.
func TestCollect_DeletesUnneededRows(t *testing.T) {
	t.Parallel()
	h := newHistory(t, shims.FSMConfig{})
	h.apply(node("n1"), node("n2"), &shims.JobRegister{Job: webJob(3), Evals: []*cluster.Evaluation{jobEval("e1")}})
	h.apply(h.place("e1", "n1", "n1", "n2"))
	h.apply(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{
		{Alloc: "a0", Node: "n1", ClientStatus: cluster.ClientFailed, At: noon},
		{Alloc: "a1", Node: "n1", ClientStatus: cluster.ClientRunning, At: noon},
	}})
	h.apply(&shims.JobDeregister{Job: webJob(0).Key()})
	h.apply(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{
		{Alloc: "a1", Node: "n1", ClientStatus: cluster.ClientComplete, At: noon},
	}})
	for e := range h.state().WorkView().OpenEvals(webJob(0).Key()) {
		done := e.Copy()
		done.Status, done.ModifyTime = cluster.EvalComplete, noon
		h.apply(&shims.EvalUpdate{Evals: []*cluster.Evaluation{done}})
	}
	later := noon.Add(time.Second)
	m := &shims.Collect{At: later, Request: collect.Request{
		Before: collect.Before{Allocs: later, Evals: later, Jobs: later},
		Rows:   collect.Rows{Allocs: []cluster.AllocID{"a0", "a1", "a2", "a9"}, Evals: []cluster.EvalID{"e1"}, Jobs: []cluster.JobKey{webJob(0).Key()}},
	}}
	must.Eq(t, shims.CollectApplied{Deleted: collect.Rows{Allocs: []cluster.AllocID{"a0", "a1"}}, Kept: 4}, h.apply(m).(shims.CollectApplied),
		must.Sprint("a2 runs, and needs its evaluation and job"))
	must.NotNil(t, h.state().Alloc("a2"))
	must.NotNil(t, h.state().Eval("e1"))

	other := shims.NewFSM(shims.FSMConfig{})
	restore(t, other, persist(t, h.fsm))
	must.Eq(t, dump(t, h.fsm), dump(t, other))
}

// An older server would stop at the entry, so no server proposes it before all servers understand
// it.
func TestCollect_WaitsForItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, fsm := new(fakeRaft), shims.NewFSM(shims.FSMConfig{})
		p := newProposer(t, r, fsm, shims.Options{})
		for v := cluster.Version(1); v <= 3; v++ {
			if v > 1 {
				_, err := fsm.ApplyEntry(uint64(v), encode(t, &shims.RaiseClusterVersion{Version: v}))
				must.NoError(t, err)
			}
			var answer shims.Answer
			must.True(t, p.Propose(&shims.Collect{}, func(a shims.Answer) { answer = a }))
			synctest.Wait()
			if v < 3 {
				must.Eq(t, raftwrite.Rejected, answer.Outcome)
				must.ErrorIs(t, answer.Err, cluster.ErrVersion)
				must.SliceEmpty(t, r.proposed)
			}
		}
		must.SliceLen(t, 1, r.proposed)
		must.Eq(t, []byte{byte(shims.CollectType), 3}, r.proposed[0][:2])
		r.answerAll(nil)
	})
}
