package invariant

import "time"

// G6 nothing lost, of what is proposed: an outcome that is unknown is never
// guessed. After one, and at the beginning of a term, nothing is planned before a
// barrier that was asked for later, and then from a state behind it. What is in
// flight is not sent again. What failed is planned again: see [Stalled] and
// [NotRetried].

// checkPlan judges whether a term may propose at all.
func (j *Judge) checkPlan(t *term, p *write) {
	if t.owes && !p.barrier {
		what := "the term is new"
		if t.owesSince > 0 {
			what = "the outcome of a write is unknown"
		}
		j.find(PlannedBehind, Violation{}, "term %d of server %d proposed a %s before a barrier: %s", t.number, t.server, p.Message.Type(), what)
	}
}

// checkBarrier finds a term that owes a barrier and neither waits for one nor has
// any reason to ask for it later.
func (j *Judge) checkBarrier(t *term, clock time.Time, held bool) {
	if !t.owes || held || !t.last.any || t.ended || t.news.any || len(t.writes) > 0 || t.unseen(j.now) || j.recent(t.failure, clock) {
		return
	}
	j.find(NotRetried, Violation{}, "term %d of server %d plans nothing before a barrier, and nobody is about to ask for one", t.number, t.server)
}

// checkFresh judges what was proposed in a step, now that the step is known.
func (j *Judge) checkFresh(t *term, s Step, seen uint64) {
	at := instant{j.now, s.Clock}
	t.failRound(at)
	for _, p := range t.fresh {
		p.seen, p.clock = seen, s.Clock
		switch {
		case p.barrier:
			if t.news.barrier || t.failedBarrier.equal(at) {
				j.find(TooSoon, Violation{}, "term %d asked for a barrier again at once", t.number)
			}
			continue
		case t.failedEntry.equal(at):
			j.find(TooSoon, Violation{}, "term %d wrote again at once after a write that failed", t.number)
		}
		if says := timeOf(p.Message); !says.Equal(s.Clock) {
			j.find(Mistimed, Violation{}, "an entry says %s, and its proposer's clock said %s", says, s.Clock)
		}
		if seen < t.minIndex {
			j.find(PlannedFromOld, Violation{}, "planned from the state at index %d, and was told of index %d", seen, t.minIndex)
		}
	}
	if len(t.fresh) > 0 && !t.fresh[len(t.fresh)-1].barrier {
		j.checkRound(t, s)
	} else if t.news.full {
		t.beginRound(s.Clock) // and nothing of it was taken
	}
	t.fresh = t.fresh[:0]
}
