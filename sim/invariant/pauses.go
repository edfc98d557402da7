package invariant

import (
	"maps"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Brake: after a pause is applied, the drain marks nothing, except what its job no longer has. A pause holds the
// drains that it must hold, and no others. A resume moves the deadline by the paused time.
//
// The judge follows the requests, and not the rows that the state has of pauses. Audits compare the two.

// pausesOf are the pauses of a state.
func pausesOf(s *statestore.Snapshot) opinion.Pauses {
	p := opinion.Pauses{Own: map[cluster.DrainID]time.Time{}}
	if _, all := s.Draining(); all != nil {
		p.All = all.At
	}
	for n := range s.Nodes() {
		if d := n.Drain; d != nil && d.Paused != nil {
			p.Own[d.ID] = d.Paused.At
		}
	}
	return p
}

// paused reports whether the drain of a draining node is paused.
func paused(m *snapshot, n *node) bool { return !m.pauses.Since(n.drain()).IsZero() }

// passed reports whether the drain of a draining node takes all remaining allocations. A paused drain does not.
func passed(m *snapshot, n *node) bool { return opinion.Passed(n.drain(), m.at) && !paused(m, n) }

// judgePause judges a request to pause or to resume.
func (j *requestJudge) judgePause(e *entry, m *shims.PauseDrains) {
	done, ok := e.Response.(shims.DrainPauseApplied)
	if !ok {
		return // the FSM refused the request
	}
	p := &j.tables.pauses
	changed := false
	switch {
	case m.Node != "":
		changed = j.pauseOne(e, m)
	case m.Pause:
		if changed = p.All.IsZero(); changed {
			p.All = m.At
		}
	case !p.All.IsZero():
		changed = true
		for _, n := range j.tables.draining {
			j.resumeHeld(e, m, n)
		}
		p.All = time.Time{}
	}
	if changed != done.Changed || !changed && j.changed(e) {
		j.find(WrongPause, Violation{Node: m.Node}, "the request had to change something: %t, the answer is %t, and %d rows changed", changed, done.Changed, len(e.nodes))
	}
	if !p.All.IsZero() != (done.All != nil) {
		j.find(WrongPause, Violation{Node: m.Node}, "the pause of all is of %s, and the answer has %v", p.All, done.All)
	}
}

// pauseOne judges the pause or the resume of one drain, and reports whether it changes anything.
func (j *requestJudge) pauseOne(e *entry, m *shims.PauseDrains) bool {
	n, p := j.tables.node(m.Node), &j.tables.pauses
	d := n.drain()
	if d == nil {
		j.find(WrongPause, on(n), "the FSM accepted a request for a drain, but the node does not drain")
		return false
	}
	since := p.Since(d)
	_, own := p.Own[d.ID]
	switch {
	case m.Pause && since.IsZero() && opinion.Passed(d, m.At):
		j.find(WrongPause, on(n), "the FSM paused a drain that takes all its allocations at %s", m.At)
		return false
	case m.Pause && own || !m.Pause && (!own || p.HeldByAll(d)):
		return false
	case m.Pause:
		if since.IsZero() {
			since = m.At
		}
		p.Own[d.ID] = since
		j.checkPaused(e, n, d.Strategy.ForceDeadline)
		return true
	}
	deadline := p.DeadlineAfter(d, m.At)
	delete(p.Own, d.ID)
	j.checkPaused(e, n, deadline)
	return true
}

// resumeHeld judges the end of the pause of all for one drain.
func (j *requestJudge) resumeHeld(e *entry, m *shims.PauseDrains, n *node) {
	p, d := &j.tables.pauses, n.drain()
	if !p.HeldByAll(d) {
		return
	}
	if _, own := p.Own[d.ID]; own {
		return
	}
	j.checkPaused(e, n, p.DeadlineAfter(d, m.At))
}

// checkPaused compares the drain of a node after a request with its deadline, and with the index of the entry.
func (j *requestJudge) checkPaused(e *entry, n *node, deadline time.Time) {
	after := e.After.Node(n.id)
	if after == nil || after.Drain == nil || after.Drain.ID != n.drain().ID {
		j.find(WrongPause, on(n), "the pause or resume of a drain ended it")
		return
	}
	if after.Drain.Revision != cluster.Revision(e.Index) {
		j.find(RevisionMoved, on(n), "a pause or resume at index %d left the drain at revision %d", e.Index, after.Drain.Revision)
	}
	if !after.Drain.Strategy.ForceDeadline.Equal(deadline) {
		j.find(DeadlineMoved, on(n), "after the pause or resume the deadline is %s, and it must be %s", after.Drain.Strategy.ForceDeadline, deadline)
	}
}

// comparePauses reports whether the pauses of the state equal those of the requests.
func (j *auditJudge) comparePauses(s *statestore.Snapshot) bool {
	rows, own := pausesOf(s), maps.Clone(j.tables.pauses.Own)
	maps.DeleteFunc(own, func(id cluster.DrainID, _ time.Time) bool { // drains that have ended
		return !drains(j.tables, id)
	})
	if rows.All.Equal(j.tables.pauses.All) && maps.EqualFunc(rows.Own, own, time.Time.Equal) {
		return true
	}
	j.find(WrongPause, Violation{}, "the state has the pauses %v, and the requests made %v of all and %v", rows, j.tables.pauses.All, own)
	return false
}

// drains reports whether the drain runs.
func drains(b *tables, id cluster.DrainID) bool {
	for _, n := range b.draining {
		if n.drain().ID == id {
			return true
		}
	}
	return false
}
