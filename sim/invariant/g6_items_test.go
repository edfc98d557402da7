package invariant_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenItems() []broken {
	return []broken{
		{"a stuck group without its evaluation", invariant.NoEvaluation, nil, func(t *testing.T) *fixture {
			s := stuck(t)
			m := s.again("web")
			s.fake(m, shims.MarksApplied{}, nothing)
			return s
		}},
		{"a valid end refused", invariant.ValidRefused, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.ended("a1")
			s.drain("n1", 0)
			m := s.ends("n1")
			s.fake(m, shims.CompletionsApplied{Refused: []rules.Refusal{{Node: "n1", Why: "no"}}}, nothing)
			must.StrContains(t, s.j.Violations()[0].Text, `the drain has nothing left to wait for: "no"`)
			return s
		}},
		{"an answer that misses an item", invariant.WrongAnswer, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.fake(m, shims.MarksApplied{}, func(txn *statestore.Txn) { _ = txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals) })
			return s
		}},
		{"an answer that claims an end", invariant.WrongAnswer, []invariant.Check{invariant.EndedEarly}, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.ends("n1")
			r := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: cluster.OutcomeComplete}}
			s.fake(m, shims.CompletionsApplied{Ended: r}, nothing)
			return s
		}},
		{"an entry that removes a mark", invariant.MarkLost, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.mark(cluster.MarkPaced, "a1")
			s.forge(reportOf("a1", "n1"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) {
				state.Alloc("a1").DesiredTransition = cluster.DesiredTransition{}
			})
			return s
		}},
	}
}

// stuck is a fixture in which a1 is marked and its evaluation is complete, but no plan stopped it.
func stuck(t *testing.T) *fixture {
	s := web(t, invariant.Options{}, 1, 1)
	s.drain("n1", 0)
	s.mark(cluster.MarkPaced, "a1")
	s.closeEvals("web")
	return s
}

// again returns an entry that evaluates a group again.
func (s *fixture) again(id cluster.JobID) *shims.AllocUpdateDesiredTransition {
	return &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
		At: s.now, Policy: s.policy, Reevaluate: []cluster.GroupKey{groupKey(id)}, Evals: []*cluster.Evaluation{s.eval(id)},
	}}
}
