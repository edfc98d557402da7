package invariant_test

import (
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenItems() []broken {
	return []broken{
		{"a mark whose evaluation was dropped", invariant.NoEvaluation, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.lie(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) { _ = txn.ApplyMarks(m.At, m.Marks.Marks, nil) })
			return s
		}},
		{"a stuck group whose evaluation was dropped", invariant.NoEvaluation, nil, func(t *testing.T) *stage {
			s := stuck(t)
			m := s.again("web")
			s.lie(m, shims.MarksApplied{}, nothing)
			return s
		}},
		{"a good mark refused", invariant.GoodRefused, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.refuse(s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"good marks refused with a bad one", invariant.GoodRefused, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			s.refuse(s.marks(cluster.MarkPaced, "a1", "a2"))
			return s
		}},
		{"a good end refused", invariant.GoodRefused, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.ended("a1")
			s.drain("n1", 0)
			m := s.ends("n1")
			s.lie(m, shims.CompletionsApplied{Refused: []rules.Refusal{{Node: "n1", Why: "no"}}}, nothing)
			return s
		}},
		{"an answer without one of the items", invariant.Unanswered, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.lie(m, shims.MarksApplied{}, func(txn *statestore.Txn) { _ = txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals) })
			return s
		}},
		{"an answer that says ended", invariant.Unanswered, []invariant.Check{invariant.EndedEarly}, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.ends("n1")
			r := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: cluster.OutcomeComplete}}
			s.lie(m, shims.CompletionsApplied{Ended: r}, nothing)
			return s
		}},
		{"a mark that is lost", invariant.MarkLost, nil, func(t *testing.T) *stage {
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

func fineItems() []fine {
	return []fine{
		{"a bad mark refused, the rest made", func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.drain("n2", 0)
			s.mark(cluster.MarkPaced, "a1", "a2")
			return s
		}},
		{"a mark twice in its entry", func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1", "a1")
			s.apply(m)
			return s
		}},
		{"a mark without an evaluation, refused", func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			m.Evals = nil
			s.apply(m)
			return s
		}},
		{"a stuck group that is evaluated again, one that is not", func(t *testing.T) *stage {
			s := stuck(t)
			s.apply(s.again("web"))
			s.apply(s.again("web"))
			return s
		}},
		{"an end twice in its entry", func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.ended("a1")
			s.drain("n1", 0)
			s.apply(s.ends("n1", "n1"))
			return s
		}},
	}
}

// stuck has a1 marked, and its evaluation closed without a stop.
func stuck(t *testing.T) *stage {
	s := web(t, invariant.Options{}, 1, 1)
	s.drain("n1", 0)
	s.mark(cluster.MarkPaced, "a1")
	s.answered("web")
	return s
}

// again is an entry that has a group evaluated again.
func (s *stage) again(id cluster.JobID) *shims.AllocUpdateDesiredTransition {
	return &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
		At: s.now, Reevaluate: []cluster.GroupKey{groupKey(id)}, Evals: []*cluster.Evaluation{s.eval(id)},
	}}
}
