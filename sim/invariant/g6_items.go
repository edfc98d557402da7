package invariant

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G6 nothing lost, for applied entries: one bad item never fails the rest of its entry, the
// answer gives the outcome of each item, and each mark comes with an evaluation.

// carriesEval reports whether the entry carries an evaluation of the job.
func (w *markJudge) carriesEval(key cluster.JobKey) bool {
	return slices.ContainsFunc(w.m.Evals, func(e *cluster.Evaluation) bool { return e != nil && jobOf(e) == key })
}

// checkAnswer compares the answer with the outcome of the entry's items.
func (w *markJudge) checkAnswer() {
	answer, ok := w.e.Response.(shims.MarksApplied)
	if !ok {
		if len(w.m.Marks.Marks) > 0 {
			w.find(WrongAnswer, Violation{}, "the answer to %d marks is a %T", len(w.m.Marks.Marks), w.e.Response)
		}
		return
	}
	for _, mark := range answer.Accepted {
		if !w.e.made(mark) {
			w.find(WrongAnswer, Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group},
				"the answer accepts the mark %s, but the entry did not make it", mark.Class)
		}
	}
	if made := len(w.m.Marks.Marks) - w.refused; len(answer.Accepted) != made || len(answer.Refused) != w.refused {
		w.find(WrongAnswer, Violation{}, "the entry made %d marks and refused %d, but the answer says %d and %d",
			made, w.refused, len(answer.Accepted), len(answer.Refused))
	}
}

// checkEvals judges the evaluations of the entry. It must make one for each job with a mark or
// with a stuck group, and no other.
func (w *markJudge) checkEvals() {
	wanted := slices.Clone(w.jobs)
	for _, key := range w.m.Reevaluate {
		switch {
		case !w.now.stuck(w.tables.group(key)):
			if len(w.m.Marks.Marks) == 0 {
				w.idle[w.e.Index] = idleItem{w.e.Before.Index(), Violation{Group: key}, "every marked allocation that runs on has an open evaluation"}
			}
		case w.carriesEval(key.Job):
			wanted = append(wanted, key.Job)
		}
	}
	for _, key := range wanted {
		if !w.makesEval(key) {
			w.find(NoEvaluation, aboutJob(key), "the entry marked allocations of job %s or evaluates it again, but made no evaluation of it", key)
		}
	}
	w.checkEachOnce(wanted)
}

// checkEachOnce finds evaluations of other jobs, and second evaluations of a job.
func (w *markJudge) checkEachOnce(wanted []cluster.JobKey) {
	seen := make([]cluster.JobKey, 0, len(wanted))
	for _, c := range w.e.evals {
		if c.before != nil || c.after == nil {
			continue
		}
		key := jobOf(c.after)
		switch {
		case !slices.Contains(wanted, key):
			w.find(IdleWrite, aboutJob(key), "the entry made an evaluation of job %s, but no mark of it", key)
		case slices.Contains(seen, key):
			w.find(NeedlessEvaluation, aboutJob(key), "the entry made a second evaluation of job %s", key)
		}
		seen = append(seen, key)
	}
}

// makesEval reports whether the entry made a pending evaluation of the job because of marks.
func (w *markJudge) makesEval(key cluster.JobKey) bool {
	return slices.ContainsFunc(w.e.evals, func(c change[cluster.Evaluation]) bool {
		return c.after != nil && jobOf(c.after) == key && c.after.Status == "pending" && c.after.TriggeredBy == "node-drain" && c.after.CreateIndex == w.e.Index
	})
}

// stuck reports whether a marked allocation of the group runs on without an open evaluation of
// its job.
func (m *snapshot) stuck(g *group) bool { return m.tally(g).stuck && len(g.job.open) == 0 }
