package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G6 nothing lost, for proposals: a drainer never guesses an unknown outcome. After one, and at the beginning of a term, nothing is planned before a
// barrier that was asked for later, and then from a state behind it. What is in
// flight is not sent again. What failed is planned again: see [Stalled] and
// [NotRetried].

// writeJudge judges what drainers propose and are answered: G6, and the bounds of G9.
type writeJudge struct{ *facts }

// checkPlan judges whether a term may propose at all.
func (j *writeJudge) checkPlan(t *term, p *write) {
	if t.needsBarrier && !p.barrier {
		what := "the term is new"
		if t.barrierAfter > 0 {
			what = "the outcome of a write is unknown"
		}
		j.find(PlannedBehind, Violation{}, "term %d of server %d proposed a %s before a barrier: %s", t.number, t.server, p.Message.Type(), what)
	}
}

// checkBarrier finds a term that owes a barrier and neither waits for one nor has
// any reason to ask for it later.
func (j *progressJudge) checkBarrier(t *term, clock time.Time, held bool) {
	if !t.needsBarrier || held || !t.last.any || t.ended || t.news.any || len(t.writes) > 0 || t.unseen(j.now) || t.failures.waits(&j.options, clock) {
		return
	}
	j.find(NotRetried, Violation{}, "term %d of server %d plans nothing before a barrier, and asks for none", t.number, t.server)
}

// checkFresh judges the proposals of a step when the step has ended.
func (j *writeJudge) checkFresh(t *term, s Step, seen uint64) {
	proposes, waits := len(t.fresh) > 0 || t.news.entryFull || t.news.barrierFull, t.failures.waits(&j.options, s.Clock)
	if proposes && waits {
		j.find(TooSoon, Violation{}, "term %d wrote at %s, and had to wait until %s after failure %d in a row",
			t.number, s.Clock, t.failures.until(&j.options), t.failures.count)
	}
	for _, p := range t.fresh {
		p.seen, p.clock = seen, s.Clock
		if p.barrier {
			continue
		}
		if says := timeOf(p.Message); !says.Equal(s.Clock) {
			j.find(Mistimed, Violation{}, "an entry says %s, and its proposer's clock said %s", says, s.Clock)
		}
		if seen < t.minIndex {
			j.find(PlannedFromOld, Violation{}, "planned from the state at index %d, after news of index %d", seen, t.minIndex)
		}
	}
	if t.proposesEntries() {
		j.checkRound(t, s)
	}
	t.beginRound(s, s.View != nil && seen >= t.minIndex, waits)
}

// checkEvalsProposed holds a proposal to one evaluation of each job with a mark or with a
// group to evaluate again. The FSM refuses a mark without its evaluation.
func (j *writeJudge) checkEvalsProposed(w Write) {
	m, ok := w.Message.(*shims.AllocUpdateDesiredTransition)
	if !ok {
		return
	}
	jobs := make([]cluster.JobKey, 0, len(m.Evals))
	for _, e := range m.Evals {
		jobs = append(jobs, jobOf(e))
	}
	for _, mark := range m.Marks.Marks {
		if !slices.Contains(jobs, mark.Group.Job) {
			j.find(NoEvaluation, Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group},
				"its mark was proposed without an evaluation of job %s", mark.Group.Job)
		}
	}
	for _, key := range m.Reevaluate {
		if !slices.Contains(jobs, key.Job) {
			j.find(NoEvaluation, Violation{Group: key}, "it was proposed to evaluate the group again without an evaluation of job %s", key.Job)
		}
	}
}

// launch notes the items of a write that is in flight from now on.
func (j *writeJudge) launch(t *term, p *write) {
	marks, reevaluate, ends := items(p.Message)
	for _, m := range marks {
		delete(t.failed, m.Alloc)
		if t.marks[m.Alloc]++; t.marks[m.Alloc] > 1 {
			j.find(SentTwice, Violation{Drain: m.Drain, Node: m.Node, Alloc: m.Alloc, Group: m.Group}, "its mark is in flight already")
		}
	}
	for _, key := range reevaluate {
		t.groups[key]++
	}
	for _, c := range ends {
		delete(t.failedEnds, c.Node)
		if t.ends[c.Node]++; t.ends[c.Node] > 1 {
			j.find(SentTwice, Violation{Drain: c.Drain, Node: c.Node}, "its end is in flight already")
		}
	}
}

// settle notes the answers to the items of an applied write.
func (j *writeJudge) settle(t *term, p *write, a shims.Answer) {
	marks, reevaluate, ends := items(p.Message)
	t.news.any = true
	t.news.reevaluated = append(t.news.reevaluated, reevaluate...)
	var refused []rules.Refusal
	switch r := a.Response.(type) {
	case shims.MarksApplied:
		refused = r.Refused
	case shims.CompletionsApplied:
		refused = r.Refused
	}
	for _, r := range refused {
		for _, m := range marks {
			if m.Alloc == r.Alloc {
				t.news.items = append(t.news.items, refusedItem{m.Drain, m.Alloc})
			}
		}
		for _, c := range ends {
			if c.Node == r.Node {
				t.news.items = append(t.news.items, refusedItem{drain: c.Drain})
			}
		}
	}
	if item, idle := j.idle[a.Index]; idle {
		delete(j.idle, a.Index)
		if p.seen == item.before && p.seen != 0 {
			j.find(IdleWrite, item.about, "entry %d had no effect on it in the very state that it was planned from: %s", a.Index, item.why)
		}
	}
}
