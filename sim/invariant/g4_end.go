package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G4 end: while there is a leader with a quorum, a drain with a deadline ends by
// deadline + B. B follows from the configuration and from the stop times on the node.
// A drain without a deadline ends as soon as every allocation that had to leave has left.
//
// Faults may take the leader away. So the judge sets bounds only after the end of all
// faults. The bound of a drain is the sum of these times:
//
//   - the deadline, or the end of the effects of faults if that is later;
//   - for each stage, the time to write the missing marks, and the longest stop time with
//     the margin, where the node's limits for volumes belong to the stop time;
//   - the time to write the end of the drain.
//
// A paused drain has no bound. A drain gets a later bound only for a reason: a new strategy, the end of a pause, a new allocation on the node, new
// limits of the node, a storage plugin that no longer serves what the drain leaves, a new leader, a
// change of the leader's clock, or a mark or stop with a time that lies in the future because the
// clock was set back.

// endJudge judges when drains end, once all faults have ended.
type endJudge struct {
	*facts
	// calm means that all faults have ended. Their effects last until settled.
	calm    bool
	settled time.Time
	bounds  map[cluster.NodeID]*bound
	// next is the earliest end of a bound, or zero.
	next time.Time
}

// bound holds the times by which one drain must end, in the world's time. Zero is no bound.
type bound struct {
	drain    cluster.DrainID
	revision cluster.Revision
	// computed follows from the deadline and the stop times.
	computed time.Time
	// finished applies to a drain that has nothing left to wait for.
	finished time.Time
	// shown is the latest end that a report has shown.
	shown time.Time
}

// setBounds sets the bound of every running drain.
func (j *endJudge) setBounds() {
	if !j.calm {
		return
	}
	clear(j.bounds)
	now := j.tables.snapshot(j.clock(j.leader), &j.options)
	for _, n := range j.tables.draining {
		j.setBound(now, n)
	}
	j.updateNext()
}

// resetBounds sets all bounds again after a change of the leader or of its clock.
func (j *endJudge) resetBounds() {
	if j.calm {
		j.settled = later(j.settled, j.now.Add(j.options.Bounds.Settle))
		j.setBounds()
	}
}

// setBound sets the bound of a node's drain from the present state.
func (j *endJudge) setBound(now *snapshot, n *node) {
	d := n.drain()
	b := &bound{drain: d.ID, revision: d.Revision}
	if old := j.bounds[n.id]; old != nil && old.drain == d.ID && old.revision == d.Revision {
		b.shown = old.shown
	}
	b.computed = j.computeBound(now, n, j.leader.ahead())
	j.noteFinished(now, n, b)
	j.bounds[n.id] = b
}

// computeBound returns the time by which the node's drain must end, in the world's time, or
// zero if the drain has no bound. ahead is how far the leader's clock is ahead of the world.
func (j *endJudge) computeBound(m *snapshot, n *node, ahead time.Duration) time.Time {
	d := n.drain()
	cutoff, ends := opinion.Cutoff(d)
	if !ends || paused(m, n) {
		return time.Time{}
	}
	at := later(j.settled.Add(ahead), cutoff)
	at = later(at, j.now.Add(ahead))
	write := j.writeTime(m)
	for stage := range opinion.StageCount {
		over := at // the end of the stage
		for _, a := range n.live {
			if a.stage != stage || !a.hasToLeave() {
				continue
			}
			if stage == opinion.Plugin && j.options.Policy.PluginsAfterDeadline == rules.PluginsAfterStop {
				return time.Time{} // plugins wait for the other allocations without a limit
			}
			end := opinion.StoppedBy(a.row, n.row, at.Add(write)).Add(j.options.Policy.StopMargin)
			if a.leaving() {
				end = opinion.WaitEnd(a.row, n.row, d, j.options.Policy.StopMargin)
			}
			over = later(over, end)
		}
		at = over
	}
	return at.Add(write).Add(-ahead)
}

// writeTime is how long a drainer may take to write all items for all draining nodes. It
// includes the coalescing window, one wait after a failure or refusal, the reads of the state,
// and the rounds of writes. A round has as many entries as may be in flight.
func (j *endJudge) writeTime(m *snapshot) time.Duration {
	const longest = 4096 // the assumed size of a mark with its evaluation, in bytes
	left, o := len(m.draining), &j.options
	for _, n := range m.draining {
		left += m.stages(n).total()
	}
	atOnce := max(1, min(o.MaxIDs/2, o.MaxBytes/longest)) * o.MaxInFlight
	rounds := time.Duration(3 + left/atOnce)
	return o.Coalesce + o.RetryMax + rounds*(o.Bounds.Wake+o.Bounds.Write+o.MinInterval+2*o.query())
}

// updateBounds updates the bounds of the drains that an entry concerns.
func (j *endJudge) updateBounds(e *entry) {
	if !j.calm {
		return
	}
	if p, is := e.Message.(*shims.PauseDrains); is && p.Node == "" {
		j.setBounds() // a pause of all moves no revision
		return
	}
	now := j.tables.snapshot(j.clock(j.leader), &j.options)
	for _, c := range e.nodes {
		if changesLimits(c) {
			delete(j.bounds, c.after.ID) // also the end that a report has shown
		}
		j.updateBound(now, j.tables.node(newest(c).ID), false)
	}
	for _, n := range e.mayExclude(j.tables) {
		if d := n.drain(); d != nil && d.Strategy.IgnoreSystemJobs {
			delete(j.bounds, n.id)
			j.updateBound(now, n, false)
		}
	}
	for _, c := range e.allocs {
		lengthens := c.after != nil && (c.before == nil || requestedAt(c.after).After(now.at))
		j.updateBound(now, j.tables.node(newest(c).NodeID), lengthens)
	}
	p := j.options.Policy.Completion
	for _, n := range j.tables.draining { // their ends wait for replacements on other nodes, or for the data that these take
		if p == rules.CompletionReplaced || p == rules.CompletionMigrated || len(n.ended) > 0 {
			j.updateBound(now, n, false)
		}
	}
	j.updateNext()
	j.findLate(j.now)
}

// changesLimits reports whether an entry changed the limits of a node for volumes, which changes
// the stop times on the node.
func changesLimits(c change[cluster.Node]) bool {
	return c.before != nil && c.after != nil && (c.before.VolumeAllowance != c.after.VolumeAllowance || c.before.HoldLimit != c.after.HoldLimit)
}

// requestedAt is when an allocation was requested to leave, by the clock of the server.
func requestedAt(a *cluster.Allocation) time.Time {
	return later(a.DesiredTransition.MarkedAt, a.StoppedAt)
}

// updateBound updates the bound of one node's drain. lengthens means that the drain may take
// longer than its present bound allows.
func (j *endJudge) updateBound(now *snapshot, n *node, lengthens bool) {
	d, b := n.drain(), j.bounds[n.id]
	switch {
	case d == nil:
		delete(j.bounds, n.id)
	case b == nil || b.drain != d.ID || b.revision != d.Revision || lengthens:
		j.setBound(now, n)
	default:
		j.noteFinished(now, n, b)
	}
}

// noteFinished starts or clears the bound of a drain that has nothing left to wait for.
func (j *endJudge) noteFinished(m *snapshot, n *node, b *bound) {
	_, why := m.unfinished(n)
	switch {
	case why != "":
		b.finished = time.Time{}
	case b.finished.IsZero():
		b.finished = later(j.now, j.settled).Add(j.writeTime(m))
	}
}

// earliest is the earliest time by which the drain must end, or zero.
func (b *bound) earliest() time.Time { return earlier(earlier(b.computed, b.finished), b.shown) }

// earlier is the earlier of two times. Zero is no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// updateNext finds the earliest end of all bounds.
func (j *endJudge) updateNext() {
	j.next = time.Time{}
	for _, b := range j.bounds { //lint:order the earliest in any order
		j.next = earlier(j.next, b.earliest())
	}
}

// findLate finds drains that ran on past a bound.
func (j *endJudge) findLate(now time.Time) {
	if !j.calm || j.next.IsZero() || !now.After(j.next) {
		return
	}
	passed := func(t time.Time) bool { return !t.IsZero() && now.After(t) }
	for _, n := range j.tables.draining {
		b := j.bounds[n.id]
		if b == nil || !passed(b.earliest()) {
			continue
		}
		switch left := j.tables.snapshot(now, &j.options).stages(n).total(); {
		case passed(b.finished):
			j.find(EndForgotten, on(n), "the drain has nothing left to wait for and should have ended %s ago", now.Sub(b.finished))
		case passed(b.computed):
			j.find(LateEnd, on(n), "the drain should have ended %s ago, and %d allocations are left", now.Sub(b.computed), left)
		default:
			j.find(BoundBroken, on(n), "the report showed an end %s ago, and %d allocations are left", now.Sub(b.shown), left)
		}
		*b = bound{drain: b.drain, revision: b.revision} // one violation for each drain is enough
	}
	j.updateNext()
}

// judgeShown judges the bound that a report shows. Every drain with a deadline has a bound,
// unless its storage plugins wait without a limit. The shown bound must not be later than the
// one that follows from the stop times and the configuration. The drain must keep it, with an
// allowance for the time of writes, which are not in the state.
func (j *endJudge) judgeShown(r *reasons, n *node, report *rules.Report) {
	ahead := r.q.Clock.Sub(j.now)
	own, shown := j.computeBound(r.now, n, ahead), report.EndsBy
	if own.IsZero() != shown.IsZero() {
		j.find(WrongBound, on(n), "the report shows the bound %s, and the bound is %s", shown, own)
	}
	if own.IsZero() || shown.IsZero() {
		return
	}
	if shown.After(own.Add(ahead)) {
		j.find(WrongBound, on(n), "the report shows the bound %s, and the drain must end by %s", shown, own.Add(ahead))
	}
	b := j.bounds[n.id]
	if b == nil || r.now.tables != j.tables || b.drain != n.drain().ID || r.q.Term != j.leader.number {
		return
	}
	latency := time.Duration(opinion.StageCount+1) * 3 * (j.options.Bounds.Wake + j.options.Bounds.Write)
	b.shown = later(b.shown, later(shown.Add(-ahead), j.settled).Add(latency))
	j.updateNext()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
