package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G8 reasons: every allocation still on a draining node has exactly one reason,
// the first of the closed set that matches, true in the world, with its numbers and
// since when. A reason is found again from the state, from what is in flight, and
// from what the client has said. Two are the drainer's word: that a mark is
// planned, which is believed as long as it could be made and something holds the
// drainer up; and which of equal candidates it is that waits.

// reasons judges the reports of one quiet point.
type reasons struct {
	*facts
	ends *endJudge
	term *term
	now  *snapshot
	q    Quiet
	// behind says that the drainer may not have had its say on the state.
	behind bool
	// planned are the allocations whose mark is said to be pending. paced and slots
	// count those of them, by group, that take room and slots; all counts all.
	planned           map[cluster.AllocID]bool
	all, paced, slots map[*group]int
	// seen says of which allocations there was a report.
	seen map[*alloc]bool
}

func newReasons(j *Judge, t *term, m *snapshot, q Quiet) *reasons {
	return &reasons{
		facts: j.facts, ends: &j.ends, term: t, now: m, q: q, planned: map[cluster.AllocID]bool{}, seen: map[*alloc]bool{},
		all: map[*group]int{}, paced: map[*group]int{}, slots: map[*group]int{},
	}
}

// judge judges the reports.
func (r *reasons) judge() {
	reports := make(map[cluster.DrainID]*rules.Report, len(r.q.Reports))
	for i := range r.q.Reports {
		report := &r.q.Reports[i]
		if d := report.Drain; d == nil || reports[d.ID] != nil {
			r.find(TwoReasons, Violation{}, "a report of no drain, or a second of the same")
		} else {
			reports[d.ID] = report
			r.plan(report)
		}
	}
	for _, n := range r.now.draining {
		report := reports[n.drain().ID]
		if report == nil {
			r.find(NoReason, on(n), "there is no report of the drain")
			continue
		}
		delete(reports, n.drain().ID)
		r.judgeReport(n, report)
	}
	for _, report := range r.q.Reports {
		if report.Drain != nil && reports[report.Drain.ID] != nil {
			r.find(ReasonForNone, Violation{Drain: report.Drain.ID, Node: report.Drain.NodeID}, "a report of a drain that does not run")
		}
	}
}

// plan notes what the report says is pending.
func (r *reasons) plan(report *rules.Report) {
	for i := range report.Allocs {
		if report.Allocs[i].Reason != rules.ReasonWritePending {
			continue
		}
		a := r.now.allocs[report.Allocs[i].Alloc]
		if a == nil || r.planned[a.id()] {
			continue
		}
		r.planned[a.id()] = true
		r.all[a.group]++
		if a.healthy() {
			// A mark in flight that the present state does not allow will be refused.
			if a.leaving() || a.node.drain() == nil || r.now.rule(a).class != cluster.MarkNone {
				r.paced[a.group]++
			}
		} else if !a.leaving() && a.node.drain() != nil {
			if c := r.now.rule(a).class; c == cluster.MarkFree || c == cluster.MarkCanary {
				r.slots[a.group]++
			}
		}
	}
}

// judgeReport judges the report of one node.
func (r *reasons) judgeReport(n *node, report *rules.Report) {
	var waiting [rules.ReasonCount]int
	for i := range report.Allocs {
		ar := &report.Allocs[i]
		if ar.Reason < rules.ReasonCount {
			waiting[ar.Reason]++
		}
		a := r.now.allocs[ar.Alloc]
		about := Violation{Drain: n.drain().ID, Node: n.id, Alloc: ar.Alloc, Group: ar.Group}
		switch {
		case a == nil || a.node != n || !a.live():
			r.find(ReasonForNone, about, "%q, and nothing of it is on the node", ar.Reason)
		case r.seen[a]:
			r.find(TwoReasons, about, "a second reason: %q", ar.Reason)
		default:
			r.seen[a] = true
			r.judgeReason(a, ar)
		}
	}
	for _, a := range n.live {
		if !r.seen[a] {
			r.find(NoReason, of(a), "it is still there and has no reason")
		}
	}
	r.judgeTotals(n, report, waiting)
	r.judgeShown(n, report)
}

// judgeReason judges one reason.
func (r *reasons) judgeReason(a *alloc, ar *rules.AllocExplanation) {
	r.counters.Reasons++
	if ar.Group != a.group.key || int(ar.Stage) != int(a.turn) {
		r.find(WrongNumbers, of(a), "the reason is of %s, stage %s", ar.Group, ar.Stage)
	}
	if r.q.Truth != nil && r.now.tables == r.tables && r.q.Truth.Ended(a.id()) {
		r.find(UntrueReason, of(a), "%q, and its client was told that its end is known", ar.Reason)
	}
	want, why := r.reason(a)
	if ar.Reason != want {
		r.find(UntrueReason, of(a), "%q, and it is %q%s", ar.Reason, want, why)
		return
	}
	r.judgeNumbers(a, ar)
	r.judgeSince(a, ar)
}

// reason is the first reason of the set that matches.
func (r *reasons) reason(a *alloc) (want rules.Reason, why string) {
	switch d := a.node.drain(); {
	case !opinion.HasToLeave(a.turn, d):
		return rules.ReasonLeftByRequest, ""
	case r.term.marks[a.id()] > 0 && !a.leaving():
		return rules.ReasonWritePending, ": its mark is in flight"
	case a.stopping(): // a mark in flight of what stops already moves nothing
		return rules.ReasonStopping, ""
	case a.marked():
		return rules.ReasonWaitingForScheduler, ""
	}
	rule := r.now.rule(a)
	switch c := rule.class; {
	case c == cluster.MarkNone && r.planned[a.id()] && r.behind:
		return rules.ReasonWritePending, "" // planned when it held
	case c == cluster.MarkNone:
		return rule.hold, ""
	case withNode(c) || c == cluster.MarkGone:
		return rules.ReasonWritePending, ": it may leave now, as " + c.String()
	case c == cluster.MarkFree || c == cluster.MarkCanary:
		return r.reasonForSlot(a)
	}
	return r.reasonForRoom(a)
}

// reasonForSlot is the reason of an allocation that takes a slot.
func (r *reasons) reasonForSlot(a *alloc) (rules.Reason, string) {
	left := r.now.tally(a.group).slotsLeft() - r.slots[a.group]
	switch planned := r.planned[a.id()]; {
	case planned && (left >= 0 || r.behind), !planned && left > 0:
		return rules.ReasonWritePending, ": there are slots left"
	}
	return rules.ReasonWaitingForRoom, ""
}

// reasonForRoom is the reason of a healthy allocation.
func (r *reasons) reasonForRoom(a *alloc) (rules.Reason, string) {
	t := r.now.tally(a.group)
	left := t.room() - r.paced[a.group]
	switch planned := r.planned[a.id()]; {
	case planned && (left >= 0 || r.behind || r.now.mayProceed(a.group)), !planned && left > 0:
		return rules.ReasonWritePending, ": " + t.String()
	case a.group.blocked() != nil:
		return rules.ReasonWaitingForReplacement, ""
	case t.outstanding+r.all[a.group] > 0:
		return rules.ReasonWaitingForRoom, ""
	}
	return rules.ReasonBelowBudget, ""
}

// checkSettled finds marks that are said to be pending although nothing holds the
// drainer up.
func (r *reasons) checkSettled() {
	for _, n := range r.now.draining {
		for _, a := range n.live {
			if r.planned[a.id()] && !r.waits(r.term, r.now.at, refusedItem{n.drain().ID, a.id()}) && !r.coalesces(r.now, n) && !r.coalescesElsewhere(a.group) {
				r.find(UntrueReason, of(a), "%q, and nothing is in flight nor waited for", rules.ReasonWritePending)
			}
		}
	}
}

// coalescesElsewhere reports whether the group has allocations on a node whose
// deadline has passed and may still wait for others.
func (r *reasons) coalescesElsewhere(g *group) bool {
	return slices.ContainsFunc(g.members, func(a *alloc) bool { return r.coalesces(r.now, a.node) })
}

// groupWaits reports whether the term may wait with a mark of the group, because it was
// refused.
func (r *reasons) groupWaits(g *group, clock time.Time) bool {
	return slices.ContainsFunc(g.members, func(a *alloc) bool {
		return a.node.drain() != nil && r.waits(r.term, clock, refusedItem{a.node.drain().ID, a.id()})
	})
}

// judgeNumbers judges the numbers of a reason that is so.
func (r *reasons) judgeNumbers(a *alloc, ar *rules.AllocExplanation) {
	t := r.now.tally(a.group)
	if due := r.due(a, ar.Reason); !ar.Due.Equal(due) {
		r.find(WrongNumbers, of(a), "%q is due at %s, and it is at %s", ar.Reason, ar.Due, due)
	}
	if ar.Reason >= rules.ReasonWaitingForHealth {
		got, want := [3]int{ar.Healthy, ar.Count, ar.MaxParallel}, [3]int{t.healthy, t.pace.Count, t.pace.MaxParallel}
		if got != want {
			r.find(WrongNumbers, of(a), "%q says healthy, count, max_parallel %v, and it is %v", ar.Reason, got, want)
		}
	}
	switch ar.Reason {
	case rules.ReasonWaitingForScheduler:
		open := a.group.job.open
		if (len(open) > 0) != (ar.Eval != nil) || ar.Eval != nil && !slices.Contains(open, r.now.evals[ar.Eval.ID]) {
			r.find(WrongNumbers, of(a), "%q names evaluation %q, and %d of the job are open", ar.Reason, evalID(ar.Eval), len(open))
		}
	case rules.ReasonWaitingForReplacement:
		if evalID(ar.Eval) != evalID(a.group.blocked()) {
			r.find(WrongNumbers, of(a), "%q names evaluation %q, and %q is blocked", ar.Reason, evalID(ar.Eval), evalID(a.group.blocked()))
		}
	case rules.ReasonWaitingForRoom:
		r.judgeOutstanding(a, ar.Outstanding)
	}
}

// due is when a reason ends by itself or is overdue, or zero.
func (r *reasons) due(a *alloc, reason rules.Reason) time.Time {
	switch reason {
	case rules.ReasonStopping:
		if !a.row.StoppedAt.IsZero() {
			return opinion.StoppedBy(a.row, a.row.StoppedAt)
		}
	case rules.ReasonWaitingForHealth:
		return r.now.tally(a.group).pace.Due(a.row, r.now.policy.HealthGrace)
	case rules.ReasonBatchRunning, rules.ReasonNoPacedMoves:
		return a.node.drain().Strategy.ForceDeadline
	}
	return time.Time{}
}

func evalID(e *cluster.Evaluation) cluster.EvalID {
	if e == nil {
		return ""
	}
	return e.ID
}

// judgeOutstanding judges what an allocation is said to wait for: each is on its
// way, and of those of its group that were asked and are to leave none is missing.
func (r *reasons) judgeOutstanding(a *alloc, said []cluster.AllocID) {
	if len(said) == 0 || !slices.IsSorted(said) {
		r.find(WrongNumbers, of(a), "it waits for room, and for %v", said)
	}
	pace := r.now.tally(a.group).pace
	for _, id := range said {
		o := r.now.allocs[id]
		if o == nil || o.group != a.group || !r.planned[id] && !(o.live() && r.now.outstanding(o, pace)) && r.now.slots(o, pace) == 0 {
			r.find(WrongNumbers, of(a), "it waits for %s, which is not on its way", id)
		}
	}
	if r.now.rule(a).class != cluster.MarkPaced {
		return // it waits for those with a slot
	}
	for _, o := range a.group.members {
		if o.live() && o.leaving() && !slices.Contains(said, o.id()) {
			r.find(WrongNumbers, of(a), "it waits for %v, and %s is on its way", said, o.id())
		}
	}
}

// since is when the reason began to hold, by the times that are in the state, or
// zero if none says.
func (r *reasons) since(a *alloc, reason rules.Reason) time.Time {
	d := a.node.drain()
	here := later(a.row.CreateTime, d.Strategy.StartedAt)
	switch reason {
	case rules.ReasonLeftByRequest:
		return d.UpdatedAt
	case rules.ReasonStopping:
		return a.row.StoppedAt
	case rules.ReasonWaitingForScheduler:
		return a.row.DesiredTransition.MarkedAt
	case rules.ReasonDisconnected:
		if !opinion.Reachable(a.node.row) {
			return a.node.row.StatusChangedAt
		}
	case rules.ReasonBatchRunning, rules.ReasonWaitingForStage, rules.ReasonWaitingForHealth:
		return here
	case rules.ReasonWaitingForReplacement:
		return later(a.group.blocked().CreateTime, here)
	}
	return time.Time{}
}

// judgeSince judges since when a reason is said to be so.
func (r *reasons) judgeSince(a *alloc, ar *rules.AllocExplanation) {
	want, s := r.since(a, ar.Reason), ar.Since
	switch {
	case !want.IsZero() && (s.Seen || !s.At.Equal(want)):
		r.find(WrongSince, of(a), "%q since %s, and it is since %s", ar.Reason, s.At, want)
	case !s.Seen && s.At.IsZero():
		r.find(WrongSince, of(a), "%q since no time, and the leader did not see it begin", ar.Reason)
	case s.At.IsZero() && ar.Reason == rules.ReasonWritePending && r.term.marksFor(a.id(), a.node.drain().ID):
		r.find(WrongSince, of(a), "%q since no time, and its mark is in flight", ar.Reason)
	case r.term.clockSet: // what was seen before has times of another clock
	case s.Seen && !s.At.IsZero() && r.began(a, ar.Reason) && s.At.Before(r.term.quiet.clock):
		r.find(WrongSince, of(a), "%q seen since %s, and at %s it was not so", ar.Reason, s.At, r.term.quiet.clock)
	case s.At.After(later(later(r.q.Clock, r.facts.now), r.latest)):
		r.find(WrongSince, of(a), "%q since %s, which is to come", ar.Reason, s.At)
	}
}

// heard is the report of a drainer at one quiet point, if the drainer was up to date.
type heard struct {
	// clock is the time on its clock, zero if there was none.
	clock time.Time
	// groups are the reasons of each group on a draining node, allocs those whose
	// mark was pending.
	groups map[cluster.GroupKey][rules.ReasonCount]bool
	allocs map[cluster.AllocID]bool
}

// began reports whether a reason that only a leader dates cannot have held at the
// quiet point before: what is pending is dated by allocation, the rest by group. A
// group that waits because something of it was refused has not been looked at since.
func (r *reasons) began(a *alloc, reason rules.Reason) bool {
	before := &r.term.quiet
	switch {
	case r.behind || before.clock.IsZero() || !before.clock.Before(r.q.Clock):
		return false
	case r.groupWaits(a.group, before.clock) || r.groupWaits(a.group, r.q.Clock):
		return false
	}
	if reason == rules.ReasonWritePending {
		return !before.allocs[a.id()]
	}
	held, known := before.groups[a.group.key]
	return known && !held[reason]
}

// remember keeps the report for the next quiet point.
func (r *reasons) remember() {
	h := heard{groups: map[cluster.GroupKey][rules.ReasonCount]bool{}, allocs: r.planned}
	if !r.behind {
		h.clock = r.q.Clock
	}
	hold := func(key cluster.GroupKey, reason rules.Reason) {
		held := h.groups[key]
		held[reason] = true
		h.groups[key] = held
	}
	for i := range r.q.Reports {
		for _, ar := range r.q.Reports[i].Allocs {
			if ar.Reason < rules.ReasonCount {
				hold(ar.Group, ar.Reason)
			}
			if reason, hidden := r.hidden(ar.Alloc); hidden {
				hold(ar.Group, reason)
			}
		}
	}
	r.term.quiet = h
}

// hidden is the reason that an allocation would have whose mark is in flight and would
// not be planned now. Reports say that it is pending, and that is so; but the drainer
// has seen its group held, and dates by that what it says when the mark is refused or
// another of the group is held.
func (r *reasons) hidden(id cluster.AllocID) (reason rules.Reason, hidden bool) {
	a := r.now.allocs[id]
	if a == nil || a.leaving() || r.term.marks[id] == 0 || a.node.drain() == nil {
		return 0, false
	}
	t := r.now.tally(a.group)
	switch rule := r.now.rule(a); rule.class {
	case cluster.MarkNone:
		return rule.hold, true
	case cluster.MarkFree, cluster.MarkCanary:
		return rules.ReasonWaitingForRoom, t.slotsLeft() < r.slots[a.group]
	case cluster.MarkPaced:
		if t.outstanding+r.all[a.group] > 1 { // besides the allocation
			return rules.ReasonWaitingForRoom, t.room() < r.paced[a.group]
		}
		return rules.ReasonBelowBudget, t.room() < r.paced[a.group]
	}
	return 0, false
}

// judgeTotals judges the sums of a report.
func (r *reasons) judgeTotals(n *node, report *rules.Report, waiting [rules.ReasonCount]int) {
	var left [cluster.StageCount]int
	ignored := 0
	for _, a := range n.live {
		if opinion.HasToLeave(a.turn, n.drain()) {
			left[a.turn]++
		} else {
			ignored++
		}
	}
	if report.Left != left || report.Ignored != ignored || report.Waiting != waiting {
		r.find(WrongTotals, on(n), "left %v, ignored %d, waiting %v; it is %v, %d, %v",
			report.Left, report.Ignored, report.Waiting, left, ignored, waiting)
	}
	if len(report.Allocs) > 0 && (report.Reason >= rules.ReasonCount || waiting[report.Reason] == 0) {
		r.find(WrongTotals, on(n), "the worst reason is said to be %q, and no allocation has it", report.Reason)
	}
	if !slices.IsSortedFunc(report.Allocs, func(a, b rules.AllocExplanation) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Alloc, b.Alloc))
	}) {
		r.find(WrongTotals, on(n), "the allocations are in no order")
	}
}
