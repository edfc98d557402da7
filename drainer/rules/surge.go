package rules

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// surges reports whether an allocation on a draining node stays until a replacement beside it is healthy. An allocation
// with a replacement that no drain requested came back after its node was away: it needs no other one.
func (g *group) surges(a *cluster.Allocation, n *cluster.Node) bool {
	switch {
	case !g.planner.surge || g.pace.SurgeOn(n) <= 0:
		return false
	case a.NextAllocation == "" || a.DesiredTransition.Surge != "":
		return true
	}
	next := g.planner.view.Alloc(a.NextAllocation)
	return next != nil && next.Standby // an earlier drain was cancelled, and the scheduler has not stopped it yet
}

// judgeHealthy judges a healthy service allocation whose turn has come.
func (g *group) judgeHealthy(a *cluster.Allocation, n *cluster.Node) ruling {
	switch {
	case g.pace.MaxParallel == 0:
		return ruling{hold: ReasonNoPacedMoves}
	case g.planner.surge && cluster.SurgeRequested(a, n) && takesOver(g.planner, cluster.LastSuccessor(a, g.planner.view.Alloc)):
		return ruling{class: cluster.MarkPaced, replaced: true} // also if max_surge is zero since
	case !g.surges(a, n):
		return ruling{class: cluster.MarkPaced}
	case !cluster.SurgeRequested(a, n):
		return ruling{class: cluster.MarkPaced, surge: true}
	}
	return ruling{hold: ReasonWaitingForSurge}
}

// takesOver reports whether a replacement, which may be nil, is healthy and stays: a drain that is forced or past its
// deadline takes it off its node now.
func takesOver(s *Planner, next *cluster.Allocation) bool {
	if next == nil {
		return false
	}
	n := s.Node(next.NodeID)
	return cluster.TakesOver(next, n) && !(n.Draining() && passed(s, n))
}

// unanswered reports whether a replacement of the allocation is requested and not placed.
func unanswered(a *cluster.Allocation, n *cluster.Node) bool {
	return cluster.SurgeRequested(a, n) && a.NextAllocation == ""
}

// readSurge counts the allocations with a requested replacement in the view, once.
func (b *budget) readSurge() {
	if b.surgeRead {
		return
	}
	b.surgeRead = true
	for a := range b.group.planner.view.ChangingAllocs(b.group.key) {
		if a.Progress() > cluster.ProgressHoldsSlot {
			break
		}
		if cluster.HoldsSurge(a) {
			b.requested = append(b.requested, a.ID)
			if a.Marked() {
				b.movedOn++
			}
		}
	}
}

// surgeFull returns why the budget admits no mark or request of an allocation with a max_surge on the node, or the empty
// string.
func (b *budget) surgeFull(could ruling, a *cluster.Allocation, n *cluster.Node) string {
	b.readSurge()
	held := len(b.requested)
	if cluster.HoldsSurge(a) {
		held-- // the request of an earlier drain
	}
	switch {
	case could.surge && held >= b.group.pace.SurgeOn(n):
		return "the group has all replacements that its max_surge permits"
	case could.replaced && b.movedOn >= b.group.pace.MaxParallel:
		return "the scheduler has not answered the marks that max_parallel permits"
	}
	return ""
}

// countSurge counts an admitted mark or request of an allocation with a max_surge.
func (b *budget) countSurge(could ruling, a *cluster.Allocation, n *cluster.Node) {
	if could.surge {
		if !cluster.HoldsSurge(a) {
			b.requested = append(b.requested, a.ID)
		}
		return
	}
	b.movedOn++
	b.countLeaving(a, n)
}

// standbysOf yields the standbys of an allocation, one the replacement of the other.
func standbysOf(s *Planner, a *cluster.Allocation) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		if a.DesiredTransition.Surge == "" {
			return
		}
		next := s.view.Alloc(a.NextAllocation)
		for range cluster.MaxRescheduleAttempts { // bounds a damaged chain that forms a circle
			if next == nil || !next.Standby || !yield(next) {
				return
			}
			next = s.view.Alloc(next.NextAllocation)
		}
	}
}

// explainSurge gives the reason of an allocation that waits for a replacement beside it.
func explainSurge(e *Explainer, r *AllocExplanation, g *explained, a *cluster.Allocation, here time.Time) {
	since := Since{At: latest(a.DesiredTransition.SurgeAt, here)}
	if original := cluster.Original(a, e.view.Alloc); a.Standby && original != nil {
		blame(e, r, g, original)
		r.set(ReasonWaitingForSurge, since, fmt.Sprintf("it replaces allocation %s, which leaves first", original.ID))
		return
	}
	next := cluster.LastSuccessor(a, e.view.Alloc)
	switch blocked := g.group.blockedEval(); {
	case next != nil && !next.Terminal():
		blame(e, r, g, next)
		detail := fmt.Sprintf("its replacement %s is not healthy yet", next.ID)
		if cluster.TakesOver(next, e.Node(next.NodeID)) {
			detail = fmt.Sprintf("its replacement %s is healthy, but the drain of its node takes it now", next.ID)
		}
		r.set(ReasonWaitingForSurge, since, detail)
	case blocked != nil:
		r.Eval = blocked
		r.set(ReasonWaitingForSurge, since, fmt.Sprintf("its replacement has no place; evaluation %s is blocked: %s", blocked.ID, blocked.StatusDescription))
	case next != nil:
		blame(e, r, g, next)
		r.set(ReasonWaitingForSurge, since, fmt.Sprintf("its replacement %s has ended", next.ID))
	default:
		r.set(ReasonWaitingForSurge, since, "its replacement is requested and not placed")
	}
}

// blame names the only allocation of the group that an allocation waits for.
func blame(e *Explainer, r *AllocExplanation, g *explained, a *cluster.Allocation) {
	c := g.culprit(e, a)
	if a.Healthy(e.Node(a.NodeID)) && !cluster.HoldsSurge(a) {
		c.State, c.Since = CulpritStays, time.Time{}
	}
	r.Culprit, r.Outstanding = &c, []cluster.AllocID{a.ID}
}

// explainSurgeFull gives the reason of an allocation whose replacement is not requested, because max_surge permits no
// more, or whose mark max_parallel does not permit.
func explainSurgeFull(e *Explainer, r *AllocExplanation, g *explained, could ruling, n *cluster.Node, here time.Time) {
	g.budget.readSurge()
	if could.replaced {
		r.Outstanding = sorted(g.census.underway, g.planned)
		r.Culprit = g.among(e, &g.moving, r.Outstanding)
		r.set(ReasonWaitingForRoom, e.heldSince(r.Group, ReasonWaitingForRoom, here), g.numbers()+"; its replacement is healthy; "+underwayText(len(r.Outstanding)))
		return
	}
	others := sorted(g.budget.requested, g.surging)
	cached := &g.inSurge
	if at := slices.Index(others, r.Alloc); at >= 0 { // it holds the request of an earlier drain
		others, cached = slices.Delete(others, at, at+1), new(*Culprit)
	}
	r.Outstanding, r.Culprit = others, g.among(e, cached, others)
	r.set(ReasonWaitingForSurge, e.heldSince(r.Group, ReasonWaitingForSurge, here),
		fmt.Sprintf("%s of the group under way, max_surge is %d", counted(len(r.Outstanding), "replacement"), g.group.pace.SurgeOn(n)))
}

// orderRequests sorts the requests among the candidates as a re-check does, by allocation, if drains permit different
// numbers of them: which of them are admitted depends on the order then. Other candidates do not depend on requests, and
// keep their order. Requests in flight stay before the others.
func orderRequests(g *group, candidates []candidate) {
	var places []int
	var requests []candidate
	differ := false
	for i, c := range candidates {
		if c.surge {
			places, requests = append(places, i), append(requests, c)
			differ = differ || g.pace.SurgeOn(c.node) != g.pace.SurgeOn(requests[0].node)
		}
	}
	if !differ {
		return
	}
	slices.SortFunc(requests, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.ID, b.ID)) })
	for i, place := range places {
		candidates[place] = requests[i]
	}
}
