package invariant

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G6 nothing lost, for applied entries: one bad item never fails the rest of its entry, the
// answer gives the outcome of each item, and each mark comes with an evaluation.

// evalled reports whether the entry carries an evaluation of the job.
func (w *markJudge) evalled(key cluster.JobKey) bool {
	return slices.ContainsFunc(w.m.Evals, func(e *cluster.Evaluation) bool { return e != nil && jobOf(e) == key })
}

// checkAnswer holds the answer to what became of the entry's items.
func (w *markJudge) checkAnswer() {
	answer, ok := w.e.Response.(shims.MarksApplied)
	if !ok {
		if len(w.m.Marks.Marks) > 0 {
			w.find(Unanswered, Violation{}, "%d marks were answered by a %T", len(w.m.Marks.Marks), w.e.Response)
		}
		return
	}
	for _, mark := range answer.Accepted {
		if !w.e.made(mark) {
			w.find(Unanswered, Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group},
				"the answer says that it was marked %s", mark.Class)
		}
	}
	if made := len(w.m.Marks.Marks) - w.refused; len(answer.Accepted) != made || len(answer.Refused) != w.refused {
		w.find(Unanswered, Violation{}, "%d of the entry's marks were made and %d were not; the answer says %d and %d",
			made, w.refused, len(answer.Accepted), len(answer.Refused))
	}
}

// checkEvals judges the evaluations that the entry has made: one of each job with
// a mark, and of each group that is stuck, and no other.
func (w *markJudge) checkEvals() {
	wanted := slices.Clone(w.jobs)
	for _, key := range w.m.Reevaluate {
		switch {
		case !w.now.stuck(w.tables.group(key)):
			if len(w.m.Marks.Marks) == 0 {
				w.idle[w.e.Index] = idleItem{w.e.Before.Index(), Violation{Group: key}, "no marked allocation runs on without an evaluation"}
			}
		case w.evalled(key.Job):
			wanted = append(wanted, key.Job)
		}
	}
	for _, key := range wanted {
		if !w.makesEval(key) {
			w.find(NoEvaluation, aboutJob(key), "job %s has marks that run on, and no evaluation was made beside them", key)
		}
	}
	w.checkEachOnce(wanted)
}

// checkEachOnce finds evaluations of other jobs than those, and more than one of a job.
func (w *markJudge) checkEachOnce(wanted []cluster.JobKey) {
	seen := make([]cluster.JobKey, 0, len(wanted))
	for _, c := range w.e.evals {
		if c.before != nil || c.after == nil {
			continue
		}
		key := jobOf(c.after)
		switch {
		case !slices.Contains(wanted, key):
			w.find(IdleWrite, aboutJob(key), "an evaluation was made of job %s, which has no mark in the entry", key)
		case slices.Contains(seen, key):
			w.find(EvaluatedForNothing, aboutJob(key), "another evaluation was made of job %s in one entry", key)
		}
		seen = append(seen, key)
	}
}

// makesEval reports whether the entry has made an evaluation of the job that waits
// for the scheduler, for the marks' sake.
func (w *markJudge) makesEval(key cluster.JobKey) bool {
	return slices.ContainsFunc(w.e.evals, func(c change[cluster.Evaluation]) bool {
		return c.after != nil && jobOf(c.after) == key && c.after.Status == "pending" && c.after.TriggeredBy == "node-drain" && c.after.CreateIndex == w.e.Index
	})
}

// stuck reports whether a marked allocation of the group runs on and no evaluation
// is open that would stop it.
func (m *snapshot) stuck(g *group) bool { return m.tally(g).stuck && len(g.job.open) == 0 }
