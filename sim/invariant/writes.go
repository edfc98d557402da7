package invariant

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// Write is one write that a drainer proposed: marks, ends of drains, or a barrier.
type Write struct {
	// Term is the drainer's term. N is the write's number in the term.
	Term, N int
	// Message is the proposed message, or nil for a barrier.
	Message shims.Message
	// Bytes is the size of the entry, or zero for a barrier.
	Bytes int
}

// write is a proposed write.
type write struct {
	Write
	sequence int
	barrier  bool
	// planned is the index of the state that the drainer planned from, and clock the time on its
	// clock. Both are set at the end of the step.
	planned uint64
	clock   time.Time
}

// item is an item of a write: the mark of an allocation, the end of a node's drain, or a group to
// evaluate again.
type item struct {
	alloc cluster.AllocID
	node  cluster.NodeID
	group cluster.GroupKey
}

func markItem(id cluster.AllocID) item    { return item{alloc: id} }
func endItem(id cluster.NodeID) item      { return item{node: id} }
func groupItem(key cluster.GroupKey) item { return item{group: key} }
func (i item) isGroup() bool              { return i.group != cluster.GroupKey{} }

// items yields the items of a drainer's write with their ids, without evaluations.
func items(m shims.Message) iter.Seq2[item, Violation] {
	return func(yield func(item, Violation) bool) {
		switch m := m.(type) {
		case *shims.AllocUpdateDesiredTransition:
			for _, mark := range m.Marks.Marks {
				if !yield(markItem(mark.Alloc), Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}) {
					return
				}
			}
			for _, key := range m.Reevaluate {
				if !yield(groupItem(key), Violation{Group: key}) {
					return
				}
			}
		case *shims.NodesDrainComplete:
			for _, c := range m.Completions.Completions {
				if !yield(endItem(c.Node), Violation{Drain: c.Drain, Node: c.Node}) {
					return
				}
			}
		}
	}
}

// G6 nothing lost, for proposals: a drainer never guesses an unknown outcome. After an unknown
// outcome, and at the start of a term, it proposes a barrier. It plans nothing before the
// barrier is applied, and then only from a state that includes the barrier. It does not send an
// item twice at one time. It plans the items of failed writes again: see [Stalled] and
// [NotRetried].

// writeJudge judges the proposals of drainers and their answers: G6, and the bounds of G9.
type writeJudge struct{ *facts }

// checkPlan judges whether a term may propose at all.
func (j *writeJudge) checkPlan(t *term, p *write) {
	if t.needsBarrier && !p.barrier {
		why := "the term is new"
		if t.barrierAfter > 0 {
			why = "the outcome of a write is unknown"
		}
		j.find(PlannedBeforeBarrier, Violation{}, "term %d of server %d proposed a %s before a barrier: %s", t.number, t.server, p.Message.Type(), why)
	}
}

// checkBarrier finds a term that needs a barrier, has not proposed one, and has no reason to
// wait.
func (j *progressJudge) checkBarrier(t *term, clock time.Time, held bool) {
	if !t.needsBarrier || held || !t.last.any || t.ended || t.answers.any || len(t.writes) > 0 || t.missedClockSet(j.now) || t.failures.waits(&j.options, clock) {
		return
	}
	j.find(NotRetried, Violation{}, "term %d of server %d needs a barrier, but proposes none", t.number, t.server)
}

// checkFresh judges the proposals of a step when the step has ended.
func (j *writeJudge) checkFresh(t *term, s Step, index uint64) {
	proposes, waits := len(t.fresh) > 0 || t.answers.entryFull || t.answers.barrierFull, t.failures.waits(&j.options, s.Clock)
	if proposes && waits {
		j.find(TooSoon, Violation{}, "term %d wrote at %s, but had to wait until %s after failure %d in a row",
			t.number, s.Clock, t.failures.until(&j.options), t.failures.count)
	}
	for _, p := range t.fresh {
		p.planned, p.clock = index, s.Clock
		if p.barrier {
			continue
		}
		if at := applied.Entry(shims.Applied{Message: p.Message}).At; !at.Equal(s.Clock) {
			j.find(Mistimed, Violation{}, "the entry has the time %s, but its proposer's clock showed %s", at, s.Clock)
		}
		if index < t.minIndex {
			j.find(PlannedFromOldState, Violation{}, "the term planned from the state at index %d, but had an answer of index %d", index, t.minIndex)
		}
	}
	if t.proposesEntries() {
		j.checkRound(t, s)
	}
	t.beginRound(s, s.View != nil && index >= t.minIndex, waits)
}

// checkEvalsProposed checks that a proposal has an evaluation of each job with a mark or with a
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
				"the term proposed its mark without an evaluation of job %s", mark.Group.Job)
		}
	}
	for _, key := range m.Reevaluate {
		if !slices.Contains(jobs, key.Job) {
			j.find(NoEvaluation, Violation{Group: key}, "the term proposed to evaluate the group again without an evaluation of job %s", key.Job)
		}
	}
}

// send records that the items of a write are in flight.
func (j *writeJudge) send(t *term, p *write) {
	for i, subject := range items(p.Message) {
		delete(t.failed, i)
		if t.sent[i]++; t.sent[i] > 1 && !i.isGroup() {
			j.find(SentTwice, subject, "its mark or end is already in flight")
		}
	}
}

// receive records the answers to the items of an applied write.
func (j *writeJudge) receive(t *term, p *write, a shims.Answer) {
	t.answers.any = true
	var refused []rules.Refusal
	switch r := a.Response.(type) {
	case shims.MarksApplied:
		refused = r.Refused
	case shims.CompletionsApplied:
		refused = r.Refused
	}
	for i, subject := range items(p.Message) {
		switch {
		case i.isGroup():
			t.answers.reevaluated = append(t.answers.reevaluated, i.group)
		case slices.ContainsFunc(refused, func(r rules.Refusal) bool { return r.Node == subject.Node && r.Alloc == subject.Alloc }):
			t.answers.items = append(t.answers.items, refusedItem{subject.Drain, subject.Alloc})
		}
	}
	if item, idle := j.idle[a.Index]; idle {
		delete(j.idle, a.Index)
		if p.planned == item.before && p.planned != 0 {
			j.find(IdleWrite, item.subject, "an item of entry %d had no effect in the state from which it was planned: %s", a.Index, item.why)
		}
	}
}

// idleItem is an item without effect.
type idleItem struct {
	before  uint64 // the index of the state that the entry was applied to
	subject Violation
	why     string
}

// noteRefused records the first refused item of an entry.
func (j *facts) noteRefused(e *entry, refused []rules.Refusal) {
	item := idleItem{before: e.Before.Index(), why: "the answer does not name the refused item"}
	if len(refused) > 0 {
		r := refused[0]
		item.subject, item.why = Violation{Node: r.Node, Alloc: r.Alloc}, fmt.Sprintf("%q", r.Why)
	}
	j.idle[e.Index] = item
}

// whyRefused is the answer's reason for the refusal of a mark, or of an end if alloc is empty.
func whyRefused(refused []rules.Refusal, node cluster.NodeID, alloc cluster.AllocID) string {
	for _, r := range refused {
		if r.Node == node && r.Alloc == alloc {
			return r.Why
		}
	}
	return ""
}
