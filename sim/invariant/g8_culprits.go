package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// judgeCulprit judges the allocation that a reason names: it is one of those that cause the reason,
// and it is on the node and in the state that the report gives.
func (r *reasons) judgeCulprit(a *alloc, ar *rules.AllocExplanation) {
	causes := causesOf(r.now, a, ar)
	missing := 0
	if ar.Reason == rules.ReasonBelowBudget && !isHeld(r.now, a) {
		missing = missingIn(r.now, a.group)
	}
	if ar.Missing != missing {
		r.find(WrongCulprit, of(a), "%q names %d missing allocations of the group and must name %d", ar.Reason, ar.Missing, missing)
	}
	c := ar.Culprit
	switch {
	case c == nil && len(causes) == 0:
		return
	case c == nil:
		r.find(WrongCulprit, of(a), "%q names no allocation, but %d cause it, such as %s", ar.Reason, len(causes), causes[0].id())
		return
	case c.More != len(causes)-1:
		r.find(WrongCulprit, of(a), "%q names %s and %d more, but %d cause it", ar.Reason, c.Alloc, c.More, len(causes))
	}
	o := r.now.allocs[c.Alloc]
	if o == nil || !slices.Contains(causes, o) {
		r.find(WrongCulprit, of(a), "%q names %s, which does not cause it", ar.Reason, c.Alloc)
		return
	}
	name := ""
	if o.node.row != nil {
		name = o.node.row.Name
	}
	if c.Node != o.node.id || c.NodeName != name {
		r.find(WrongCulprit, of(a), "%q names %s on node %s (%s), but it is on %s (%s)", ar.Reason, c.Alloc, c.Node, c.NodeName, o.node.id, name)
	}
	state, since := stateOf(r.now, o, r.planned[o.id()])
	switch {
	case ar.Reason == rules.ReasonWaitingForStage:
		state, since = rules.CulpritStays, time.Time{}
	case ar.Reason == rules.ReasonWaitingForData && state != rules.CulpritSilent:
		state, since = rules.CulpritWithoutData, o.row.CreateTime
	}
	if ar.Reason == rules.ReasonWaitingForSurge && len(causes) == 1 && o.healthy() && !opinion.HoldsSurge(o.row) && (a.row.Standby || opinion.RequestedBy(a.row, a.node.drain())) {
		state, since, causes = rules.CulpritStays, time.Time{}, nil // no other one is before it
	}
	if c.State != state || state != rules.CulpritUnwritten && !c.Since.Equal(since) {
		r.find(WrongCulprit, of(a), "%q names %s: it %q since %s, but it %q since %s", ar.Reason, c.Alloc, c.State, c.Since, state, since)
	}
	if ar.Reason == rules.ReasonWaitingForStage || ar.Reason == rules.ReasonWaitingForData {
		return // it names the first by stage and id, or there is only one
	}
	for _, other := range causes {
		if earlier, _ := stateOf(r.now, other, r.planned[other.id()]); earlier < state {
			r.find(WrongCulprit, of(a), "%q names %s, which %q, before %s, which %q", ar.Reason, c.Alloc, state, other.id(), earlier)
		}
	}
}

// causesOf returns the allocations that cause the reason of an allocation.
func causesOf(m *snapshot, a *alloc, ar *rules.AllocExplanation) (list []*alloc) {
	switch ar.Reason {
	case rules.ReasonWaitingForStage:
		for _, o := range a.node.live {
			if o.stage < a.stage && o.hasToLeave() {
				list = append(list, o)
			}
		}
	case rules.ReasonWaitingForData:
		if taker, _ := opinion.MayMove(a.row, state{m.tables}); taker != nil {
			list = append(list, m.allocs[taker.ID])
		}
	case rules.ReasonWaitingForSurge:
		return causesOfSurge(m, ar)
	case rules.ReasonWaitingForRoom:
		for _, id := range ar.Outstanding {
			if o := m.allocs[id]; o != nil {
				list = append(list, o)
			}
		}
	case rules.ReasonBelowBudget:
		if isHeld(m, a) {
			return nil
		}
		for _, o := range a.group.members {
			if o.live() && !opinion.Canary(o.row) && !o.row.Standby && !o.healthy() {
				list = append(list, o)
			}
		}
	}
	return list
}

// isHeld reports whether an allocation stays because it was healthy and may recover. Then its reason
// names no other allocation.
func isHeld(m *snapshot, a *alloc) bool { return !m.tally(a.group).pace.HeldUntil(a.row).IsZero() }

// missingIn is by how many live allocations the group is short of its count. Canaries do not count.
func missingIn(m *snapshot, g *group) int {
	missing := m.tally(g).pace.Count
	for _, o := range g.members {
		if o.live() && !opinion.Canary(o.row) && !o.row.Standby {
			missing--
		}
	}
	return max(0, missing)
}

// stateOf is what is wrong with an allocation of a group, and since when.
func stateOf(m *snapshot, o *alloc, planned bool) (rules.CulpritState, time.Time) {
	healthy, judged := opinion.Verdict(o.row)
	due := m.tally(o.group).pace.Due(o.row, m.policy.HealthGrace)
	written := func(at time.Time) time.Time {
		if at.IsZero() {
			return o.row.ModifyTime
		}
		return at
	}
	switch {
	case !o.live():
		return rules.CulpritNotReplaced, o.row.ModifyTime
	case !opinion.Reachable(o.node.row) && o.node.row != nil:
		return rules.CulpritSilent, written(o.node.row.StatusChangedAt)
	case !o.inTouch():
		return rules.CulpritSilent, o.row.ModifyTime
	case o.stopping():
		return rules.CulpritStopping, written(o.row.StoppedAt)
	case o.marked():
		return rules.CulpritMarked, written(o.row.DesiredTransition.MarkedAt)
	case planned:
		return rules.CulpritUnwritten, time.Time{}
	case opinion.HoldsSurge(o.row) && o.healthy():
		return rules.CulpritAwaitsReplacement, written(o.row.DesiredTransition.SurgeAt)
	case healthy:
		return rules.CulpritNotRunning, o.row.ModifyTime
	case judged:
		return rules.CulpritUnhealthy, written(o.row.DeploymentStatus.Timestamp)
	case m.at.Before(due):
		return rules.CulpritUnjudged, o.row.CreateTime
	}
	return rules.CulpritOverdue, due
}

// judgeEval judges the evaluation that a reason names: it is one of those for which the allocation
// waits, as the state has it.
func (r *reasons) judgeEval(a *alloc, ar *rules.AllocExplanation) {
	var waited []*cluster.Evaluation
	switch taker, _ := opinion.MayMove(a.row, state{r.now.tables}); {
	case ar.Reason == rules.ReasonWaitingForScheduler, ar.Reason == rules.ReasonWaitingForData && taker == nil:
		waited = a.group.job.open
	case ar.Reason == rules.ReasonWaitingForSurge:
		if blocked := a.group.blocked(); blocked != nil && opinion.RequestedBy(a.row, a.node.drain()) && len(ar.Outstanding) == 0 {
			waited = []*cluster.Evaluation{blocked}
		}
	case ar.Reason == rules.ReasonWaitingForReplacement:
		waited = []*cluster.Evaluation{a.group.blocked()}
	}
	if (len(waited) > 0) != (ar.Eval != nil) || ar.Eval != nil && !slices.Contains(waited, r.now.evals[ar.Eval.ID]) {
		r.find(WrongNumbers, of(a), "%q names evaluation %q, but that is none of the %d for which it waits", ar.Reason, evalID(ar.Eval), len(waited))
		return
	}
	if row := ar.Eval; row != nil && (row.Status != r.now.evals[row.ID].Status || row.StatusDescription != r.now.evals[row.ID].StatusDescription) {
		r.find(WrongCulprit, of(a), "%q calls evaluation %s %s (%s), but it is %s", ar.Reason, row.ID, row.Status, row.StatusDescription, r.now.evals[row.ID].Status)
	}
}
