package shims_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// applierAnswers lists raft's possible results of a write with the outcome of each.
var applierAnswers = []struct {
	name     string
	response any
	err      error
	want     raftwrite.Outcome
}{
	{"applied", shims.ChangeApplied{}, nil, raftwrite.Applied},
	{"refused as a whole", shims.Refused{Err: errors.New("no")}, nil, raftwrite.Rejected},
	{"rejected", nil, raft.ErrNotLeader, raftwrite.Rejected},
	{"unknown", nil, raft.ErrLeadershipLost, raftwrite.Unknown},
	{"panicked", nil, nil, raftwrite.Unknown},
}

func TestRaftApplier_ReportsTheOutcomeOfWrites(t *testing.T) {
	t.Parallel()
	for _, c := range applierAnswers {
		synctest.Test(t, func(t *testing.T) {
			r := new(fakeRaft)
			applier := shims.NewDrainerApplier(newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{}))
			var answer drainer.Answer
			must.True(t, applier.AllocUpdateDesiredTransition(&rules.Marks{At: noon}, func(a drainer.Answer) { answer = a }))
			synctest.Wait()
			must.Eq(t, noon, decode[*shims.AllocUpdateDesiredTransition](t, r.proposed[0]).At)
			r.answer(7, c.response, c.err)
			synctest.Wait()
			must.Eq(t, c.want, answer.Outcome, must.Sprint(c.name))
			must.Eq(t, c.want == raftwrite.Applied, answer.Err == nil, must.Sprint(c.name))
			if c.want == raftwrite.Applied {
				must.Eq(t, 7, answer.Index)
			}
		})
	}
}

func TestRaftApplier_ReportsTheRefusedPartsOfAnEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := new(fakeRaft)
		applier := shims.NewDrainerApplier(newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{}))
		refused := []rules.Refusal{{Node: "n1", Why: "it is not done"}}
		var marks, completions, barrier drainer.Answer
		must.True(t, applier.AllocUpdateDesiredTransition(&rules.Marks{}, func(a drainer.Answer) { marks = a }))
		must.True(t, applier.NodesDrainComplete(&rules.Completions{}, func(a drainer.Answer) { completions = a }))
		must.True(t, applier.Barrier(func(a drainer.Answer) { barrier = a }))
		synctest.Wait()
		r.answer(7, shims.MarksApplied{Refused: refused}, nil)
		synctest.Wait()
		r.answer(8, shims.CompletionsApplied{Refused: refused}, nil)
		r.answer(9, nil, nil)
		synctest.Wait()
		must.Eq(t, drainer.Answer{Outcome: raftwrite.Applied, Index: 7, Response: refused}, marks)
		must.Eq(t, drainer.Answer{Outcome: raftwrite.Applied, Index: 8, Response: refused}, completions)
		must.Eq(t, drainer.Answer{Outcome: raftwrite.Applied}, barrier)
	})
}
