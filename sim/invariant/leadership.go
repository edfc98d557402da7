package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// ClockSet tells how far the clock of the server on which a term runs is ahead of
// the world's from now on.
func (j *Judge) ClockSet(now time.Time, number int, ahead time.Duration) {
	j.now = now
	t := j.term(number)
	if t.offset == ahead {
		return
	}
	t.offset, t.clockSet = ahead, t.last.any
	if t.last.any {
		t.setAt = now
	}
	if t == j.leader {
		j.ends.rebound()
	}
}

// Began tells of the beginning of a drainer's term: terms have numbers of their
// own. A drainer that has lost all it remembered begins one, too.
func (j *Judge) Began(now time.Time, server, number int) {
	j.now = now
	j.events++
	j.leader = j.begin(server, number)
	j.ends.rebound()
}

// Ended tells that a term has ended: its drainer was told to stop.
func (j *Judge) Ended(now time.Time, number int) {
	j.now = now
	j.term(number).ended = true
}

// Proposed judges a write when a drainer proposes it, in the step that does.
func (j *Judge) Proposed(now time.Time, w Write) {
	j.now = now
	j.events++
	j.counters.Writes++
	t := j.term(w.Term)
	t.sequence++
	p := &write{Write: w, sequence: t.sequence, barrier: w.Message == nil}
	if t.ended {
		j.find(WroteAfterTerm, Violation{}, "term %d of server %d proposed although it had ended", t.number, t.server)
	}
	j.writes.checkPlan(t, p)
	j.writes.checkSize(w)
	j.writes.checkOrder(w)
	j.writes.checkEvalsProposed(w)
	t.writes[w.N] = p
	t.fresh = append(t.fresh, p)
	if p.barrier {
		return
	}
	if t.inFlight++; t.inFlight > j.options.MaxInFlight {
		j.find(TooManyInFlight, Violation{}, "%d entries are in flight, and %d may be", t.inFlight, j.options.MaxInFlight)
	}
	j.writes.launch(t, p)
}

// NotTaken tells of a write that the log had no room for.
func (j *Judge) NotTaken(now time.Time, w Write) {
	j.now = now
	j.events++
	t := j.term(w.Term)
	t.news.entryFull = t.news.entryFull || w.Message != nil
	t.news.barrierFull = t.news.barrierFull || w.Message == nil
	t.lose(w.Message)
}

// Answered judges the answer to a write when the drainer's side gets it.
func (j *Judge) Answered(now time.Time, number, n int, a shims.Answer) {
	j.now = now
	j.events++
	t := j.term(number)
	p := t.writes[n]
	if p == nil {
		return
	}
	delete(t.writes, n)
	if !p.barrier {
		t.inFlight--
		t.land(p.Message)
	}
	switch {
	case a.Outcome != raftwrite.Applied:
		if a.Outcome == raftwrite.Unknown && !p.barrier {
			t.needsBarrier, t.barrierAfter = true, max(t.barrierAfter, p.sequence)
		}
		j.counters.Failures++
		t.news.any, t.news.failed = true, true
		t.lose(p.Message)
	case p.barrier:
		if t.needsBarrier && p.sequence > t.barrierAfter {
			t.needsBarrier = false
		}
		t.minIndex = max(t.minIndex, a.Index)
	default:
		t.minIndex = max(t.minIndex, a.Index)
		j.writes.settle(t, p, a)
	}
}
