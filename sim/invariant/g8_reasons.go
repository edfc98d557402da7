package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G8 reasons: every live allocation on a draining node has exactly one reason, with its numbers
// and its start. It is the first matching reason of a fixed set. The judge computes the reason
// again from the state, from the items in flight, and from the reports of the client. What a reason
// names as its cause is in the state and is as described. The judge relies on the drainer for two
// things only: which marks are planned, if the contract allows them and the drainer has to wait, and
// which of several equal candidates waits.

// reasons judges the reports of one quiet point.
type reasons struct {
	*facts
	ends *endJudge
	term *term
	now  *snapshot
	q    Quiet
	// mayLag means that the drainer may not have acted on the newest state yet.
	mayLag bool
	// planned are the allocations with the reason "write pending". all counts them by group.
	// paced and slots count those of them that take room and slots, and requests and replaced those that take a part of
	// max_surge, and of max_parallel after a request.
	planned                               map[cluster.AllocID]bool
	all, paced, slots, requests, replaced map[*group]int
	// reported are the allocations with a reason.
	reported map[*alloc]bool
}

func newReasons(j *Judge, t *term, m *snapshot, q Quiet) *reasons {
	return &reasons{
		facts: j.facts, ends: &j.ends, term: t, now: m, q: q, planned: map[cluster.AllocID]bool{}, reported: map[*alloc]bool{},
		all: map[*group]int{}, paced: map[*group]int{}, slots: map[*group]int{}, requests: map[*group]int{}, replaced: map[*group]int{},
	}
}

// judge judges the reports.
func (r *reasons) judge() {
	reports := make(map[cluster.DrainID]*rules.Report, len(r.q.Reports))
	for i := range r.q.Reports {
		report := &r.q.Reports[i]
		if d := report.Drain; d == nil || reports[d.ID] != nil {
			r.find(TwoReasons, Violation{}, "a report has no drain, or a drain has two reports")
		} else {
			reports[d.ID] = report
			r.plan(report)
		}
	}
	for _, n := range r.now.draining {
		report := reports[n.drain().ID]
		if report == nil {
			r.find(NoReason, on(n), "the drain has no report")
			continue
		}
		delete(reports, n.drain().ID)
		r.judgeReport(n, report)
	}
	for _, report := range r.q.Reports {
		if report.Drain != nil && reports[report.Drain.ID] != nil {
			r.find(ReasonOfAbsent, Violation{Drain: report.Drain.ID, Node: report.Drain.NodeID}, "the drain has a report, but does not run")
		}
	}
}

// plan records the marks that the report calls pending.
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
		if planSurge(r, a) {
			continue
		}
		if a.healthy() {
			// The FSM will refuse a mark in flight that the present state does not allow.
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
	awaited := r.now.awaitedData(n)
	for i := range report.Allocs {
		ar := &report.Allocs[i]
		if ar.Reason < rules.ReasonCount {
			waiting[ar.Reason]++
		}
		a := r.now.allocs[ar.Alloc]
		subject := Violation{Drain: n.drain().ID, Node: n.id, Alloc: ar.Alloc, Group: ar.Group}
		switch {
		case a == nil || a.node != n || !a.live() && !slices.Contains(awaited, a):
			r.find(ReasonOfAbsent, subject, "it has the reason %q, but is not live on the node, and its data is not awaited", ar.Reason)
		case r.reported[a]:
			r.find(TwoReasons, subject, "it has a second reason, %q", ar.Reason)
		default:
			r.reported[a] = true
			r.judgeReason(a, ar)
		}
	}
	for _, a := range slices.Concat(n.live, awaited) {
		if !r.reported[a] {
			r.find(NoReason, of(a), "it is live on the node, or its data is awaited, and has no reason")
		}
	}
	r.judgeTotals(n, report, waiting)
	r.ends.judgeShown(r, n, report)
}

// judgeReason judges one reason.
func (r *reasons) judgeReason(a *alloc, ar *rules.AllocExplanation) {
	if ar.Group != a.group.key || int(ar.Stage) != int(a.stage) {
		r.find(WrongNumbers, of(a), "the report has the group %s and the stage %s", ar.Group, ar.Stage)
	}
	if r.q.Truth != nil && r.now.tables == r.tables && a.live() && r.q.Truth.Ended(a.id()) {
		r.find(UntrueReason, of(a), "the reason is %q, but a leader has confirmed to the client that the allocation ended", ar.Reason)
	}
	want, why := r.reason(a)
	if ar.Reason != want {
		r.find(UntrueReason, of(a), "the reason is %q and must be %q%s", ar.Reason, want, why)
		return
	}
	r.judgeNumbers(a, ar)
	r.judgeSince(a, ar)
}

// reason returns the first matching reason.
func (r *reasons) reason(a *alloc) (want rules.Reason, why string) {
	switch {
	case !a.live():
		return rules.ReasonWaitingForData, ""
	case !a.hasToLeave():
		return rules.ReasonLeftByRequest, ""
	case r.term.sent[markItem(a.id())] > 0 && !a.leaving():
		return rules.ReasonWritePending, ": its mark is in flight"
	case a.leaving() && a.stage == opinion.Plugin && a.row.VolumeHolds != nil:
		return rules.ReasonHeldForVolumes, ""
	case a.stopping(): // a mark in flight changes nothing for it
		return rules.ReasonStopping, ""
	case a.marked():
		return rules.ReasonWaitingForScheduler, ""
	}
	rule := r.now.rule(a)
	switch c := rule.class; {
	case c == cluster.MarkNone && r.planned[a.id()] && r.mayLag:
		return rules.ReasonWritePending, "" // an earlier state allowed its mark
	case c == cluster.MarkNone:
		return rule.hold, ""
	case ofWholeNode(c) || c == cluster.MarkGone:
		return rules.ReasonWritePending, ": it may leave now, with a mark " + c.String()
	case c == cluster.MarkFree || c == cluster.MarkCanary:
		return r.reasonForSlot(a)
	case rule.requests || rule.replaced:
		return reasonForSurge(r, a, rule)
	}
	return r.reasonForRoom(a)
}

// reasonForSlot is the reason of an allocation that takes a slot.
func (r *reasons) reasonForSlot(a *alloc) (rules.Reason, string) {
	left := r.now.tally(a.group).slotsLeft() - r.slots[a.group]
	switch planned := r.planned[a.id()]; {
	case planned && (left >= 0 || r.mayLag), !planned && left > 0:
		return rules.ReasonWritePending, ": its group has free slots"
	}
	return rules.ReasonWaitingForRoom, ""
}

// reasonForRoom is the reason of a healthy allocation.
func (r *reasons) reasonForRoom(a *alloc) (rules.Reason, string) {
	t := r.now.tally(a.group)
	left := t.room() - r.paced[a.group]
	switch planned := r.planned[a.id()]; {
	case planned && (left >= 0 || r.mayLag || r.now.mayProceed(a.group)), !planned && left > 0:
		return rules.ReasonWritePending, ": " + t.String()
	case a.group.blocked() != nil:
		return rules.ReasonWaitingForReplacement, ""
	case t.outstanding+r.all[a.group] > 0:
		return rules.ReasonWaitingForRoom, ""
	}
	return rules.ReasonBelowBudget, ""
}

// checkSettled finds pending marks of a drainer that has nothing to wait for.
func (r *reasons) checkSettled() {
	for _, n := range r.now.draining {
		for _, a := range n.live {
			if r.planned[a.id()] && !r.term.waits(r.now.at, refusedItem{n.drain().ID, a.id()}) && !coalesces(r.now, n) && !r.coalescesElsewhere(a.group) {
				r.find(UntrueReason, of(a), "the reason is %q, but no write is in flight and the drainer does not have to wait", rules.ReasonWritePending)
			}
		}
	}
}

// coalescesElsewhere reports whether the group has an allocation on a node whose deadline may
// still wait for the deadlines of other nodes.
func (r *reasons) coalescesElsewhere(g *group) bool {
	return slices.ContainsFunc(g.members, func(a *alloc) bool { return coalesces(r.now, a.node) })
}

// groupWaits reports whether the term may wait with a mark of the group after a refusal.
func (r *reasons) groupWaits(g *group, clock time.Time) bool {
	return slices.ContainsFunc(g.members, func(a *alloc) bool {
		return a.node.drain() != nil && r.term.waits(clock, refusedItem{a.node.drain().ID, a.id()})
	})
}

// judgeNumbers judges the numbers of a correct reason.
func (r *reasons) judgeNumbers(a *alloc, ar *rules.AllocExplanation) {
	t := r.now.tally(a.group)
	if due := r.due(a, ar.Reason); !ar.Due.Equal(due) {
		r.find(WrongNumbers, of(a), "%q is due at %s and must be due at %s", ar.Reason, ar.Due, due)
	}
	if ar.Reason >= rules.ReasonWaitingForHealth {
		got, want := [3]int{ar.Healthy, ar.Count, ar.MaxParallel}, [3]int{t.healthy, t.pace.Count, t.pace.MaxParallel}
		if got != want {
			r.find(WrongNumbers, of(a), "%q has healthy, count, max_parallel %v and must have %v", ar.Reason, got, want)
		}
	}
	if ar.Reason == rules.ReasonWaitingForRoom {
		r.judgeOutstanding(a, ar.Outstanding)
	}
	if ar.Reason == rules.ReasonWaitingForSurge {
		judgeSurge(r, a, ar)
	}
	r.judgeEval(a, ar)
	r.judgeCulprit(a, ar)
}

// due is when a reason ends by itself or becomes overdue, or zero.
func (r *reasons) due(a *alloc, reason rules.Reason) time.Time {
	switch reason {
	case rules.ReasonStopping, rules.ReasonHeldForVolumes:
		if !a.row.StoppedAt.IsZero() {
			return opinion.StoppedBy(a.row, a.node.row, a.row.StoppedAt)
		}
	case rules.ReasonWaitingForHealth:
		if opinion.WaitsForData(a.row) {
			return time.Time{}
		}
		return r.now.tally(a.group).pace.Due(a.row, r.now.policy.HealthGrace)
	case rules.ReasonBatchRunning, rules.ReasonNoPacedMoves:
		return a.node.drain().Strategy.ForceDeadline
	case rules.ReasonBelowBudget:
		return r.now.tally(a.group).pace.HeldUntil(a.row)
	}
	return time.Time{}
}

func evalID(e *cluster.Evaluation) cluster.EvalID {
	if e == nil {
		return ""
	}
	return e.ID
}

// judgeOutstanding judges the list of allocations that an allocation waits for. Each of them must
// be outstanding, and the list must contain all allocations of the group that are leaving.
func (r *reasons) judgeOutstanding(a *alloc, listed []cluster.AllocID) {
	if len(listed) == 0 || !slices.IsSorted(listed) {
		r.find(WrongNumbers, of(a), "it waits for room, but its list of outstanding allocations is empty or not sorted: %v", listed)
	}
	pace := r.now.tally(a.group).pace
	for _, id := range listed {
		o := r.now.allocs[id]
		if o == nil || o.group != a.group || !r.planned[id] && !(o.live() && r.now.outstanding(o, pace)) && r.now.slots(o, pace) == 0 {
			r.find(WrongNumbers, of(a), "it waits for %s, which is not outstanding", id)
		}
	}
	if r.now.rule(a).class != cluster.MarkPaced {
		return // it waits for a slot, and the list names only the allocations that take one
	}
	for _, o := range a.group.members {
		if o.live() && o.leaving() && !slices.Contains(listed, o.id()) {
			r.find(WrongNumbers, of(a), "it waits for %v, but %s is leaving too", listed, o.id())
		}
	}
}

// since is the start of the reason by the times in the state, or zero if the state has none.
func (a *alloc) since(reason rules.Reason, p *opinion.Pauses) time.Time {
	d := a.node.drain()
	here := later(a.row.CreateTime, d.Strategy.StartedAt)
	switch reason {
	case rules.ReasonLeftByRequest:
		return d.UpdatedAt
	case rules.ReasonHeldForVolumes:
		var since time.Time
		for _, v := range a.row.VolumeHolds.Volumes {
			if since.IsZero() || v.Since.Before(since) {
				since = v.Since
			}
		}
		if since.IsZero() {
			return later(a.row.StoppedAt, a.row.ModifyTime)
		}
		return since
	case rules.ReasonStopping:
		return a.row.StoppedAt
	case rules.ReasonWaitingForData:
		return later(a.row.ModifyTime, d.Strategy.StartedAt)
	case rules.ReasonWaitingForScheduler:
		return a.row.DesiredTransition.MarkedAt
	case rules.ReasonDisconnected:
		if !opinion.Reachable(a.node.row) {
			return a.node.row.StatusChangedAt
		}
	case rules.ReasonPaused:
		return later(p.Since(d), a.row.CreateTime)
	case rules.ReasonBatchRunning, rules.ReasonWaitingForStage, rules.ReasonWaitingForHealth:
		return here
	case rules.ReasonWaitingForSurge:
		if opinion.RequestedBy(a.row, d) || a.row.Standby {
			return later(a.row.DesiredTransition.SurgeAt, here)
		}
	case rules.ReasonWaitingForReplacement:
		return later(a.group.blocked().CreateTime, here)
	case rules.ReasonBelowBudget:
		if began := unhealthySince(a.row); !began.IsZero() {
			return later(began, here)
		}
	}
	return time.Time{}
}

// judgeSince judges the start of a reason.
func (r *reasons) judgeSince(a *alloc, ar *rules.AllocExplanation) {
	want, s := a.since(ar.Reason, &r.now.pauses), ar.Since
	switch {
	case !want.IsZero() && (s.Observed || !s.At.Equal(want)):
		r.find(WrongSince, of(a), "%q starts at %s and must start at %s", ar.Reason, s.At, want)
	case !s.Observed && s.At.IsZero():
		r.find(WrongSince, of(a), "%q has no start, neither from the state nor from the leader", ar.Reason)
	case s.At.IsZero() && ar.Reason == rules.ReasonWritePending && r.term.marksFor(a.id(), a.node.drain().ID):
		r.find(WrongSince, of(a), "%q has no start, although its mark is in flight", ar.Reason)
	case r.term.clockSet: // earlier times are those of another clock
	case s.Observed && !s.At.IsZero() && r.began(a, ar.Reason) && s.At.Before(r.term.quiet.clock):
		r.find(WrongSince, of(a), "%q starts at %s, but at %s the reason was another one", ar.Reason, s.At, r.term.quiet.clock)
	case s.At.After(later(later(r.q.Clock, r.facts.now), r.latest)):
		r.find(WrongSince, of(a), "%q starts at %s, in the future", ar.Reason, s.At)
	}
}

// lastReports holds the reports of a quiet point, if the drainer was up to date.
type lastReports struct {
	// clock is the time on the drainer's clock, or zero if there is no report.
	clock time.Time
	// groups are the reasons of each group on a draining node. allocs are the allocations
	// with a pending mark.
	groups map[cluster.GroupKey][rules.ReasonCount]bool
	allocs map[cluster.AllocID]bool
}

// began reports whether a reason began after the previous quiet point. It concerns reasons whose
// start is only in the memory of the leader. The leader dates pending marks by allocation, and
// other reasons by group. It does not plan a group that waits after a refusal.
func (r *reasons) began(a *alloc, reason rules.Reason) bool {
	before := &r.term.quiet
	switch {
	case r.mayLag || before.clock.IsZero() || !before.clock.Before(r.q.Clock):
		return false
	case r.groupWaits(a.group, before.clock) || r.groupWaits(a.group, r.q.Clock):
		return false
	}
	if reason == rules.ReasonWritePending {
		return !before.allocs[a.id()]
	}
	held, reported := before.groups[a.group.key]
	return reported && !held[reason]
}

// remember keeps the report for the next quiet point.
func (r *reasons) remember() {
	h := lastReports{groups: map[cluster.GroupKey][rules.ReasonCount]bool{}, allocs: r.planned}
	if !r.mayLag {
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

// hidden is the reason that the mark in flight of an allocation hides. The present state does not
// allow that mark, so the reason of the group has already started. The drainer reports that start
// when the FSM refuses the mark, or for another allocation of the group.
func (r *reasons) hidden(id cluster.AllocID) (reason rules.Reason, hidden bool) {
	a := r.now.allocs[id]
	if a == nil || a.leaving() || r.term.sent[markItem(id)] == 0 || a.node.drain() == nil {
		return 0, false
	}
	t := r.now.tally(a.group)
	switch rule := r.now.rule(a); rule.class {
	case cluster.MarkNone:
		return rule.hold, true
	case cluster.MarkPaced:
		if rule.requests || rule.replaced {
			return hiddenSurge(r, a, rule)
		}
		if t.outstanding+r.all[a.group] > 1 { // besides the allocation
			return rules.ReasonWaitingForRoom, t.room() < r.paced[a.group]
		}
		return rules.ReasonBelowBudget, t.room() < r.paced[a.group]
	case cluster.MarkFree, cluster.MarkCanary:
		return rules.ReasonWaitingForRoom, t.slotsLeft() < r.slots[a.group]
	}
	return 0, false
}

// judgeTotals judges the sums of a report.
func (r *reasons) judgeTotals(n *node, report *rules.Report, waiting [rules.ReasonCount]int) {
	var left [cluster.StageCount]int
	ignored := 0
	for _, a := range n.live {
		if a.hasToLeave() {
			left[a.stage]++
		} else {
			ignored++
		}
	}
	if report.Left != left || report.Ignored != ignored || report.Waiting != waiting {
		r.find(WrongTotals, on(n), "the report has left %v, ignored %d, waiting %v and must have %v, %d, %v",
			report.Left, report.Ignored, report.Waiting, left, ignored, waiting)
	}
	if len(report.Allocs) > 0 && (report.Reason >= rules.ReasonCount || waiting[report.Reason] == 0) {
		r.find(WrongTotals, on(n), "the worst reason is %q, but no allocation has it", report.Reason)
	}
	if !slices.IsSortedFunc(report.Allocs, func(a, b rules.AllocExplanation) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Alloc, b.Alloc))
	}) {
		r.find(WrongTotals, on(n), "the allocations of the report are not sorted")
	}
}
