package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G4 end: while there is a leader with a quorum, a drain with a deadline ends by
// deadline + B, where B follows from the configuration and the stop times on the
// node. One without a deadline ends as soon as nothing that had to leave is left.
//
// Faults may take the leader away, so both hold from the calm on. There each drain
// is given its bound: the later of its deadline and of when all that faults have
// begun is over; then, stage after stage, the time to write the marks of what has
// not been asked, and the longest stop time with the margin; then the time to write
// the end. Only what lengthens a drain in truth gives it another bound: another
// strategy, an allocation that lands on the node, another leader, a leader's clock
// that was set, or a mark or a stop that was stamped before the clock was set back.

// endJudge judges when drains end, once faults have ended.
type endJudge struct {
	*facts
	// calm says that faults have ended, over is when all that they have begun is over.
	calm   bool
	over   time.Time
	bounds map[cluster.NodeID]*bound
	// next is when the first bound is passed, or zero.
	next time.Time
}

// bound is by when one drain has to end, by the world's time.
type bound struct {
	drain    cluster.DrainID
	revision cluster.Revision
	// by is zero for a drain that has no bound.
	by time.Time
	// done is by when it has to end because nothing that had to leave is left, or
	// zero.
	done time.Time
	// shown is the latest end that the drainer has shown, or zero.
	shown time.Time
}

// recount gives every drain that runs its bound.
func (j *endJudge) recount() {
	if !j.calm {
		return
	}
	clear(j.bounds)
	now := j.tables.snapshot(j.clock(j.leader), j.options.Policy)
	for _, n := range j.tables.draining {
		j.bind(now, n)
	}
	j.findNext()
}

// rebound gives every drain another bound: the leader is another, or its clock.
func (j *endJudge) rebound() {
	if j.calm {
		j.over = later(j.over, j.now.Add(j.options.Bounds.Settle))
		j.recount()
	}
}

// bind gives the drain of a node its bound, as the state is now.
func (j *endJudge) bind(now *snapshot, n *node) {
	d := n.drain()
	b := &bound{drain: d.ID, revision: d.Revision}
	if old := j.bounds[n.id]; old != nil && old.drain == d.ID && old.revision == d.Revision {
		b.shown = old.shown
	}
	b.by = j.boundOf(now, n, j.leader.ahead())
	j.noteDone(now, n, b)
	j.bounds[n.id] = b
}

// boundOf is by when the node's drain has to end, by the world's time, which the
// leader's clock is ahead of; zero if it has no bound.
func (j *endJudge) boundOf(m *snapshot, n *node, ahead time.Duration) time.Time {
	d := n.drain()
	cutoff, ends := opinion.Cutoff(d)
	if !ends {
		return time.Time{}
	}
	at := later(j.over.Add(ahead), cutoff)
	at = later(at, j.now.Add(ahead))
	write := j.writeTime(m)
	for turn := range opinion.TurnCount {
		over := at
		for _, a := range n.live {
			if a.turn != turn || !opinion.HasToLeave(turn, d) {
				continue
			}
			if turn == opinion.Plugin && j.options.Policy.PluginsAfterDeadline == rules.PluginsAfterStop {
				return time.Time{} // it waits for all that is in touch, however long
			}
			end := opinion.StoppedBy(a.row, at.Add(write)).Add(j.options.Policy.StopMargin)
			if a.leaving() {
				end = opinion.WaitEnd(a.row, d, j.options.Policy.StopMargin)
			}
			over = later(over, end)
		}
		at = over
	}
	return at.Add(write).Add(-ahead)
}

// writeTime is how long a drainer may take to have what it wants written: the
// deadline's coalescing, one wait after a failure or a refusal, looks at the state,
// and rounds of as many entries as may be in flight, for all that drains, each woken
// for and answered.
//
// The longest mark and evaluation are taken to have so many bytes.
func (j *endJudge) writeTime(m *snapshot) time.Duration {
	const longest = 4096
	left, o := len(m.draining), &j.options
	for _, n := range m.draining {
		left += m.turns(n).total()
	}
	atOnce := max(1, min(o.MaxIDs/2, o.MaxBytes/longest)) * o.MaxInFlight
	rounds := time.Duration(3 + left/atOnce)
	return o.Coalesce + o.RetryMax + rounds*(o.Bounds.Wake+o.Bounds.Write+o.MinInterval+2*o.query())
}

// watchEnds follows the drains that an entry concerns.
func (j *endJudge) watchEnds(e *entry) {
	if !j.calm {
		return
	}
	now := j.tables.snapshot(j.clock(j.leader), j.options.Policy)
	for _, c := range e.nodes {
		j.watchNode(now, j.tables.node(either(c).ID), false)
	}
	for _, c := range e.allocs {
		lengthens := c.after != nil && (c.before == nil || stamped(c.after).After(now.at))
		j.watchNode(now, j.tables.node(either(c).NodeID), lengthens)
	}
	if p := j.options.Policy.Completion; p == rules.CompletionReplaced || p == rules.CompletionMigrated {
		for _, n := range j.tables.draining { // their ends wait for what is elsewhere
			j.watchNode(now, n, false)
		}
	}
	j.findNext()
	j.watchTime(j.now)
}

// stamped is when an allocation was asked to leave, by the clock of the server that asked.
func stamped(a *cluster.Allocation) time.Time {
	return later(a.DesiredTransition.MarkedAt, a.StoppedAt)
}

// watchNode follows the drain of one node. Lengthens says that the drain gets another bound.
func (j *endJudge) watchNode(now *snapshot, n *node, lengthens bool) {
	d, b := n.drain(), j.bounds[n.id]
	switch {
	case d == nil:
		delete(j.bounds, n.id)
	case b == nil || b.drain != d.ID || b.revision != d.Revision || lengthens:
		j.bind(now, n)
	default:
		j.noteDone(now, n, b)
	}
}

// noteDone notes by when a drain has to end that could end now.
func (j *endJudge) noteDone(m *snapshot, n *node, b *bound) {
	_, why := m.unfinished(n)
	switch {
	case why != "":
		b.done = time.Time{}
	case b.done.IsZero():
		b.done = later(j.now, j.over).Add(j.writeTime(m))
	}
}

// first is by when the drain has to end, of all the times that say so, or zero.
func (b *bound) first() time.Time { return sooner(sooner(b.by, b.done), b.shown) }

// sooner is the earlier of two times, where zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// findNext finds when the first drain will be too late.
func (j *endJudge) findNext() {
	j.next = time.Time{}
	for _, b := range j.bounds { //lint:order the earliest is the same in every order
		j.next = sooner(j.next, b.first())
	}
}

// watchTime finds drains that are too late.
func (j *endJudge) watchTime(now time.Time) {
	if !j.calm || j.next.IsZero() || !now.After(j.next) {
		return
	}
	passed := func(t time.Time) bool { return !t.IsZero() && now.After(t) }
	for _, n := range j.tables.draining {
		b := j.bounds[n.id]
		if b == nil || !passed(b.first()) {
			continue
		}
		switch left := j.tables.snapshot(now, j.options.Policy).turns(n).total(); {
		case passed(b.done):
			j.find(EndForgotten, on(n), "it could have ended and was to %s ago", now.Sub(b.done))
		case passed(b.by):
			j.find(LateEnd, on(n), "it was to end %s ago, and %d are left", now.Sub(b.by), left)
		default:
			j.find(BoundBroken, on(n), "it was shown to end %s ago, and %d are left", now.Sub(b.shown), left)
		}
		*b = bound{drain: b.drain, revision: b.revision} // once is enough
	}
	j.findNext()
}

// judgeShown judges the bound that a report shows: every drain with a deadline has
// one, unless its storage plugins wait for ever, and it is none that the stop times
// and the configuration do not give. It is kept, but for what writes take that the
// drainer cannot know.
func (r *reasons) judgeShown(n *node, report *rules.Report) {
	ahead := r.q.Clock.Sub(r.facts.now)
	own, shown := r.ends.boundOf(r.now, n, ahead), report.EndsBy
	if own.IsZero() != shown.IsZero() {
		r.find(BoundUnshown, on(n), "it is shown to end by %s, and its bound is %s", shown, own)
	}
	if own.IsZero() || shown.IsZero() {
		return
	}
	if shown.After(own.Add(ahead)) {
		r.find(BoundUnshown, on(n), "it is shown to end by %s, and has to by %s", shown, own.Add(ahead))
	}
	b := r.ends.bounds[n.id]
	if b == nil || r.now.tables != r.tables || b.drain != n.drain().ID || r.q.Term != r.leader.number {
		return
	}
	latency := time.Duration(opinion.TurnCount+1) * 3 * (r.options.Bounds.Wake + r.options.Bounds.Write)
	b.shown = later(b.shown, later(shown.Add(-ahead), r.ends.over).Add(latency))
	r.ends.findNext()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
