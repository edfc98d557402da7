package rules

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// Every live allocation on a draining node has exactly one reason. The reason and its
// numbers are the twin's.
func TestExplain_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy, pending := anyPolicy(t), anyPending(t, w, now)
		inFlight := map[cluster.AllocID]bool{}
		for id, mark := range pending.Marks {
			inFlight[id] = mark.InFlight
		}
		state := &twin{rows: rows{w}, now: now, policy: policy}
		all := NewExplainer(w, pending, now, policy)
		for _, n := range w.Nodes {
			report, err := Explain(w, pending, n.ID, now, policy)
			must.Eq(t, n.Drain != nil, err == nil)
			if err != nil {
				continue
			}
			must.Eq(t, report, all.Report(n), must.Sprint("in a report of all nodes"))
			var ids []cluster.AllocID
			for _, a := range state.reportedOn(n) {
				ids = append(ids, a.ID)
			}
			var got []cluster.AllocID
			var left, ignored [3]int
			var waiting [ReasonCount]int
			for _, r := range report.Allocs {
				a := w.Alloc(r.Alloc)
				got = append(got, r.Alloc)
				must.Eq(t, state.reason(a, inFlight).String(), r.Reason.String(), must.Sprintf("allocation %s", a.ID))
				must.Eq(t, a.GroupKey(), r.Group)
				must.Eq(t, turnOf(a), int(r.Stage))
				must.NotEq(t, "", r.Detail)
				must.True(t, r.Since.Observed || !r.Since.At.IsZero(), must.Sprintf("since of %s", r.Reason))
				checkNumbers(t, state, a, r)
				waiting[r.Reason]++
				if hasEnded(a) {
					continue
				}
				if state.mustLeave(a) {
					left[turnOf(a)]++
				} else {
					ignored[0]++
				}
			}
			must.Eq(t, ids, got)
			must.Eq(t, left, [3]int(report.Left))
			must.Eq(t, ignored[0], report.Ignored)
			must.Eq(t, waiting, report.Waiting)
			if len(ids) > 0 {
				must.Positive(t, waiting[report.Reason], must.Sprintf("no allocation has the reason of the node: %s", report.Reason))
			}
		}
	})
}

// reportedOn are all allocations on a node that have not ended or whose data is awaited, by stage, then id.
func (w *twin) reportedOn(n *cluster.Node) (reported []*cluster.Allocation) {
	reported = w.awaited(n)
	for _, a := range w.Allocs {
		if a.NodeID == n.ID && !hasEnded(a) {
			reported = append(reported, a)
		}
	}
	slices.SortFunc(reported, func(a, b *cluster.Allocation) int {
		return cmp.Or(cmp.Compare(turnOf(a), turnOf(b)), cmp.Compare(a.ID, b.ID))
	})
	return reported
}

// checkNumbers compares the numbers of a report with the twin's.
func checkNumbers(t *rapid.T, w *twin, a *cluster.Allocation, r AllocExplanation) {
	if r.Count+r.MaxParallel+r.Healthy != 0 {
		must.Eq(t, [3]int{w.healthyIn(a), w.count(a), w.maxParallel(a)}, [3]int{r.Healthy, r.Count, r.MaxParallel}, must.Sprintf("%s, %s", a.ID, r.Reason))
	}
	checkCulprit(t, w, a, r)
	deadline := w.nodeOf(a).Drain.Strategy.ForceDeadline
	switch r.Reason {
	case ReasonStopping:
		if a.StoppedAt.IsZero() {
			must.True(t, r.Due.IsZero())
		} else {
			must.Eq(t, a.StoppedAt.Add(w.stopTime(a)), r.Due)
		}
	case ReasonWaitingForScheduler:
		open := append(w.evalsOf(a, "pending"), w.evalsOf(a, "blocked")...)
		must.Eq(t, len(open) > 0, r.Eval != nil)
		must.True(t, r.Eval == nil || slices.Contains(open, r.Eval))
	case ReasonWaitingForData:
		_, may := w.moves(a)
		must.True(t, may)
		must.True(t, r.Culprit == nil || r.Eval == nil)
		if r.Culprit == nil && r.Eval == nil {
			chain, _ := w.chain(a)
			must.True(t, w.retried(chain[len(chain)-1]))
		}
	case ReasonWaitingForHealth:
		if waitsForData(a) {
			must.True(t, r.Due.IsZero())
			break
		}
		must.Eq(t, w.due(a), r.Due)
		must.True(t, r.Due.After(w.now))
	case ReasonBelowBudget:
		must.Eq(t, w.heldUntil(a), r.Due)
		must.True(t, r.Due.IsZero() || r.Due.After(w.now))
	case ReasonBatchRunning, ReasonNoPacedMoves:
		must.Eq(t, deadline, r.Due)
	case ReasonWaitingForReplacement:
		must.SliceContains(t, w.evalsOf(a, "blocked"), r.Eval)
	case ReasonWaitingForSurge:
		must.True(t, len(r.Outstanding) > 0 || r.Eval != nil || a.NextAllocation == "")
		must.True(t, r.Eval == nil || slices.Contains(w.evalsOf(a, "blocked"), r.Eval))
		must.SliceNotContains(t, r.Outstanding, a.ID)
	case ReasonWaitingForRoom:
		must.SliceNotEmpty(t, r.Outstanding, must.Sprintf("%s waits for room, but no allocation is under way", a.ID))
		must.True(t, slices.IsSorted(r.Outstanding))
		if !isCanary(a) || !w.verdictToCome(a) { // it may hold the slot of the canary it replaced
			must.SliceNotContains(t, r.Outstanding, a.ID)
		}
		for _, id := range r.Outstanding {
			must.True(t, sameGroup(a, w.Alloc(id)), must.Sprintf("%s waits for %s", a.ID, id))
		}
	}
}

// checkCulprit compares the culprit with the twin's facts: it causes the reason, and is in its state.
func checkCulprit(t *rapid.T, w *twin, a *cluster.Allocation, r AllocExplanation) {
	if r.Reason == ReasonBelowBudget && !r.Due.IsZero() { // its own health is the cause
		must.Nil(t, r.Culprit)
		must.Zero(t, r.Missing)
		return
	}
	causes := map[cluster.AllocID]bool{}
	for _, o := range w.Allocs {
		switch r.Reason {
		case ReasonWaitingForStage:
			causes[o.ID] = o.NodeID == a.NodeID && !hasEnded(o) && turnOf(o) < turnOf(a) && w.mustLeave(o)
		case ReasonWaitingForData:
			taker, _ := w.moves(a)
			causes[o.ID] = o == taker
		case ReasonWaitingForRoom, ReasonWaitingForSurge:
			causes[o.ID] = slices.Contains(r.Outstanding, o.ID)
		case ReasonBelowBudget:
			causes[o.ID] = sameGroup(a, o) && !hasEnded(o) && !isCanary(o) && !w.isHealthy(o)
		}
	}
	maps.DeleteFunc(causes, func(_ cluster.AllocID, causes bool) bool { return !causes })
	if len(causes) == 0 {
		must.Nil(t, r.Culprit, must.Sprintf("%s, %s", a.ID, r.Reason))
		must.Eq(t, r.Reason == ReasonBelowBudget, r.Missing > 0)
		return
	}
	c := r.Culprit
	must.True(t, causes[c.Alloc], must.Sprintf("%s, %s: %s", a.ID, r.Reason, c))
	must.Eq(t, len(causes)-1, c.More, must.Sprintf("%s, %s: %v", a.ID, r.Reason, causes))
	o := w.Alloc(c.Alloc)
	must.Eq(t, o.NodeID, c.Node)
	good, judged := verdict(o)
	late := !w.now.Before(w.due(o))
	is := map[CulpritState]bool{
		CulpritSilent: w.cannotReport(o), CulpritUnhealthy: judged && !good, CulpritOverdue: !judged && late, CulpritNotRunning: judged && good && !isLeaving(o), CulpritAwaitsReplacement: w.isHealthy(o) && o.DesiredTransition.Surge != "",
		CulpritUnjudged: !judged && !late, CulpritStopping: toStop(o), CulpritMarked: o.DesiredTransition.Migrate && !toStop(o),
		CulpritNotReplaced: hasEnded(o) && o.NextAllocation == "", CulpritUnwritten: !isLeaving(o), CulpritWithoutData: r.Reason == ReasonWaitingForData, CulpritStays: r.Reason == ReasonWaitingForStage || a.Standby && w.isHealthy(o),
	}
	must.True(t, is[c.State], must.Sprintf("%s, %s: %s", a.ID, r.Reason, c))
}
