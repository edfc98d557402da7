package drainer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// anyEntry draws an entry of marks. Half of its marks are what the twin would
// allow one by one; in the others anything may be wrong.
func anyEntry(t *rapid.T, w *world, now time.Time, p Policy) *Marks {
	m := &Marks{At: now, Policy: p}
	for _, a := range w.allocs {
		if oneIn(t, 5, "left out") {
			continue
		}
		mark := Mark{Alloc: a.ID, Group: a.GroupKey(), Node: a.NodeID, Drain: drainOf(a.NodeID), Revision: 1}
		if n := w.Node(a.NodeID); n != nil && n.Drain != nil {
			mark.Revision = n.Drain.Revision
			mark.Class, _ = (&twin{world: w, now: now, policy: p}).class(a)
		}
		if mark.Class == cluster.MarkPaced && oneIn(t, 5, "proceed") {
			mark.Class = cluster.MarkProceed
		}
		if oneIn(t, 6, "spoilt") {
			spoil(t, &mark)
		}
		m.Marks = append(m.Marks, mark)
	}
	if len(m.Marks) > 0 && oneIn(t, 3, "twice") {
		again := oneOf(t, "again", m.Marks...)
		if rapid.Bool().Draw(t, "spoilt again") {
			spoil(t, &again)
		}
		m.Marks = append(m.Marks, again)
	}
	if !oneIn(t, 3, "shuffled") {
		slices.SortStableFunc(m.Marks, Mark.compare)
	} else {
		m.Marks = rapid.Permutation(m.Marks).Draw(t, "order")
	}
	for _, j := range w.jobs {
		for _, g := range []string{"g0", "g1"} {
			if oneIn(t, 3, "reevaluated") {
				m.Reevaluate = append(m.Reevaluate, cluster.GroupKey{Job: j.Key(), Name: g})
			}
		}
		for range oneOf(t, "evaluations", 1, 1, 1, 0, 2) {
			m.Evals = append(m.Evals, &cluster.Evaluation{
				ID: cluster.EvalID(fmt.Sprintf("new%d", len(m.Evals))), Namespace: j.Namespace, JobID: j.ID, Status: cluster.EvalPending,
			})
		}
	}
	if oneIn(t, 5, "nil evaluation") {
		m.Evals = append(m.Evals, nil)
	}
	return m
}

// spoil puts one thing wrong.
func spoil(t *rapid.T, m *Mark) {
	switch rapid.IntRange(0, 6).Draw(t, "what is wrong") {
	case 0:
		m.Alloc = "nobody"
	case 1:
		m.Group.Name = "elsewhere"
	case 2:
		m.Group.Job.Namespace = "elsewhere"
	case 3:
		m.Node = "n9"
	case 4:
		m.Drain = "of another day"
	case 5:
		m.Revision++
	case 6:
		m.Class = cluster.MarkClass(rapid.Byte().Draw(t, "class"))
	}
}

// softly is a Soft by hand.
type softly struct {
	pending map[cluster.AllocID]PendingWrite
	held    map[cluster.GroupKey]map[Reason]time.Time
	behind  PendingWrite
}

func (s softly) Pending(id cluster.AllocID) (PendingWrite, bool) {
	p, ok := s.pending[id]
	return p, ok
}

func (s softly) HeldSince(key cluster.GroupKey, r Reason) (time.Time, bool) {
	at, ok := s.held[key][r]
	return at, ok
}

func (s softly) Behind() (PendingWrite, bool) { return s.behind, s.behind.Attempts > 0 }

func anySoft(t *rapid.T, w *world, now time.Time) Soft {
	if oneIn(t, 4, "nothing known") {
		return nil
	}
	s := softly{pending: map[cluster.AllocID]PendingWrite{}, held: map[cluster.GroupKey]map[Reason]time.Time{}}
	for _, a := range w.allocs {
		if oneIn(t, 5, "pending") {
			s.pending[a.ID] = PendingWrite{Since: now.Add(-time.Second)}
			if oneIn(t, 2, "failed") {
				s.pending[a.ID] = PendingWrite{Since: now.Add(-time.Minute), Attempts: 2, LastError: errors.New("no quorum")}
			}
		}
		s.held[a.GroupKey()] = map[Reason]time.Time{ReasonBelowBudget: epoch.Add(-time.Hour)}
	}
	return s
}
