package shims_test

import (
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

func TestSchedulerApplier_ReportsTheOutcomeOfWrites(t *testing.T) {
	t.Parallel()
	want := map[raftwrite.Outcome]raftwrite.Outcome{
		raftwrite.Applied: raftwrite.Applied, raftwrite.Rejected: raftwrite.Rejected, raftwrite.Unknown: raftwrite.Unknown,
	}
	for _, c := range applierAnswers {
		synctest.Test(t, func(t *testing.T) {
			r := new(fakeRaft)
			applier := shims.NewSchedulerApplier(newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{}))
			var answer scheduler.Answer
			must.True(t, applier.UpsertEvals([]*cluster.Evaluation{jobEval("e1")}, func(a scheduler.Answer) { answer = a }))
			synctest.Wait()
			r.answer(7, c.response, c.err)
			synctest.Wait()
			must.Eq(t, want[c.want], answer.Outcome, must.Sprint(c.name))
			must.Eq(t, c.want == raftwrite.Applied, answer.Err == nil, must.Sprint(c.name))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := new(fakeRaft)
		applier := shims.NewSchedulerApplier(newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{}))
		var plan, barrier scheduler.Answer
		must.True(t, applier.ApplyPlan(&cluster.Plan{Eval: jobEval("e1")}, func(a scheduler.Answer) { plan = a }))
		must.True(t, applier.Barrier(func(a scheduler.Answer) { barrier = a }))
		synctest.Wait()
		refused := []scheduler.Refusal{{Alloc: "a1", Why: "no room"}}
		r.answer(7, shims.PlanApplied{Refused: refused}, nil)
		r.answer(8, nil, nil)
		synctest.Wait()
		must.Eq(t, scheduler.Answer{Outcome: raftwrite.Applied, Index: 7, Response: refused}, plan)
		must.Eq(t, scheduler.Answer{Outcome: raftwrite.Applied}, barrier)
	})
}
