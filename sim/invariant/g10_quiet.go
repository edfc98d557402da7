package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G10 quiet: without a change, the drainer writes nothing and sleeps until the next time that
// it has to wait for. Such a time is a deadline, the time of a verdict, the end of a stage's
// wait, a retry, or a repeated request for an evaluation.

// maxIdle is how many steps may follow each other at one time without another event. Some
// steps set the time of another one at once, to read the state.
const maxIdle = 32

// wakeJudge judges the steps of drainers: G10, and the reads of G9.
type wakeJudge struct{ *facts }

// checkEndless finds steps that follow each other without end.
func (j *wakeJudge) checkEndless(t *term) {
	if t.last.any && t.last.at.Equal(j.now) && t.last.events == j.events {
		if t.last.idle++; t.last.idle == maxIdle {
			j.find(EndlessSteps, Violation{}, "term %d stepped %d times at one time without another event", t.number, t.last.idle)
		}
		return
	}
	t.last.idle, t.last.events = 0, j.events
}

// checkWake judges a step without an event. The drainer has chosen its time. The time
// must follow from the state, or from a wait of the drainer.
func (j *wakeJudge) checkWake(t *term, s Step) {
	w := t.last.wakeAt
	if s.Woken || s.Held || !t.last.any || w.IsZero() {
		return
	}
	if t.last.own || j.retries(t, w) || j.isDue(j.tables, w) {
		return
	}
	if v := t.last.view; v != nil && v.Index() != j.tables.index && j.isDue(tablesOf(v), w) {
		return
	}
	j.find(IdleWake, Violation{}, "term %d woke at %s, but nothing was due: the last step was at %s", t.number, w, t.last.clock)
}

// follows reports whether the time of the next step follows from the drainer's own actions. The
// drainer reads again at once, waits for the next read, for a newer state or for the next
// round, retries a failed write, or logs a write without an answer.
func (j *wakeJudge) follows(t *term, s Step) bool {
	const rounding = 1e-3
	w, o, l := s.WakeAt, &j.options, &t.last
	switch limited := l.tokens < 1+rounding || l.setBack > 0; {
	case w.IsZero():
		return false
	case s.Queries > 0 && w.Equal(s.Clock):
		return true
	case s.Queries == 0 && limited && !w.After(s.Clock.Add(t.readWait())):
		return true
	case s.Queries > 0 && t.viewIsOld() && w.Equal(s.Clock.Add(o.RetryBase)):
		return true
	case o.MinInterval > 0 && w.Equal(t.lastWrite.Add(o.MinInterval)):
		return true
	}
	return t.failures.waits(o, s.Clock) && w.Equal(t.failures.until(o)) || t.stalls(w)
}

// retries reports whether a term may, at a time, retry a refused item or request another
// evaluation of a group.
func (j *wakeJudge) retries(t *term, w time.Time) bool {
	//lint:order the answer is the same for any of them
	for _, a := range t.refused {
		if a.mayEnd(&j.options, w) {
			return true
		}
	}
	//lint:order the answer is the same for any of them
	for _, a := range t.reevaluated {
		if a.mayEnd(&j.options, w) {
			return true
		}
	}
	return false
}

// stalledAfter is how long a write may be without an answer before the drainer logs it.
const stalledAfter = 30 * time.Second

// isDue reports whether, by the state, the drainer has something to do at a time.
func (j *wakeJudge) isDue(b *tables, w time.Time) bool {
	p := j.options.Policy
	for _, n := range b.draining {
		d := n.drain()
		if at := d.Strategy.ForceDeadline; d.Strategy.Deadline > 0 && !w.Before(at) && !w.After(at.Add(j.options.Coalesce)) {
			return true
		}
		for _, a := range n.live {
			if _, ends := opinion.Cutoff(d); ends && a.leaving() && opinion.WaitEnd(a.row, n.row, d, p.StopMargin).Equal(w) {
				return true
			}
			pace, exists := opinion.PaceOf(a.group.job.row, a.group.key.Name)
			if exists && (a.group.due(pace, p.HealthGrace, w) || !a.leaving() && pace.HeldUntil(a.row).Equal(w)) {
				return true
			}
		}
	}
	return false
}

// due reports whether the time for a verdict on an allocation of the group ends at w. A
// running allocation with a verdict has no such time.
func (g *group) due(p opinion.Pace, grace time.Duration, w time.Time) bool {
	for _, a := range g.members {
		if _, judged := opinion.Verdict(a.row); judged && a.row.ClientStatus == "running" {
			continue
		}
		if a.live() && p.Due(a.row, grace).Equal(w) {
			return true
		}
	}
	return false
}
