package invariant

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Surge: in a group with a max_surge, a drain first requests a replacement. It marks the allocation when the
// replacement is healthy. The request is judged like a mark: it needs a healthy allocation whose turn has come, of a
// drain that runs, is not paused and is before its deadline. At most max_surge allocations of a group hold a request, and at
// most max_parallel are marked after one and not stopped by a plan. The witness judges which allocations stand by.

// named names a mark or a request.
func named(mark rules.Mark) string {
	if mark.Surge {
		return "request for a replacement"
	}
	return "mark " + mark.Class.String()
}

// row returns the row of an allocation, or nil.
func (b *tables) row(id cluster.AllocID) *cluster.Allocation { return state{b}.Alloc(id) }

// takesRoom reports whether a mark takes room of the budget.
func (r ruling) takesRoom() bool { return r.class == cluster.MarkPaced && !r.requests && !r.replaced }

// ruleHealthy applies the contract to a healthy allocation of a service whose turn has come and that may move.
func ruleHealthy(m *snapshot, a *alloc, pace opinion.Pace) ruling {
	d := a.node.drain()
	next := opinion.LastSuccessor(a.row, m.row)
	switch {
	case m.volumes.ClusterVersion() >= opinion.PlacesBeside && opinion.RequestedBy(a.row, d) && next != nil && takesOver(m, next) && !isTaken(m, next):
		return ruling{class: cluster.MarkPaced, replaced: true}
	case m.volumes.ClusterVersion() < opinion.PlacesBeside || pace.Surge(d) == 0 || opinion.ReplacedFromElsewhere(a.row, m.row):
		return leavesAs(cluster.MarkPaced)
	case !opinion.RequestedBy(a.row, d):
		return ruling{class: cluster.MarkPaced, requests: true}
	}
	return heldFor(rules.ReasonWaitingForSurge)
}

// isTaken reports whether a drain past its deadline takes an allocation off its node.
func isTaken(m *snapshot, a *cluster.Allocation) bool {
	n := m.node(a.NodeID)
	return n.drain() != nil && passed(m, n)
}

// takesOver reports whether an allocation is healthy, or would be if it did not stand by, after the marks so far.
func takesOver(m *snapshot, a *cluster.Allocation) bool {
	return opinion.TakesOver(a, m.node(a.NodeID).row) && !slices.Contains(m.made, a.ID)
}

// standsBy reports whether an allocation stands by after the marks so far.
func standsBy(m *snapshot, a *alloc) bool {
	if !a.row.Standby {
		return false
	}
	original := opinion.OriginalOf(a.row, m.row)
	return original != nil && !slices.Contains(m.made, original.ID)
}

// healthyNow reports whether an allocation is healthy after the marks so far, apart from its own.
func healthyNow(m *snapshot, a *alloc) bool {
	return a.healthy() || a.row.Standby && !standsBy(m, a) && opinion.TakesOver(a.row, a.node.row)
}

// unplaced reports whether a requested replacement has not been placed.
func unplaced(a *alloc) bool {
	return opinion.RequestedBy(a.row, a.node.drain()) && a.row.NextAllocation == ""
}

// activated counts the standby allocations beside an allocation that its mark makes healthy.
func activated(m *snapshot, a *alloc) (n int) {
	if !opinion.KeepsSlot(a.row) || a.row.Standby {
		return 0
	}
	for _, next := range opinion.Successors(a.row, m.row) {
		if next.Standby && takesOver(m, next) {
			n++
		}
	}
	return n
}

// checkSurge judges a paced mark or a request by the max_surge of the group.
func checkSurge(m *snapshot, a *alloc, mark rules.Mark, r ruling) verdict {
	t := m.tally(a.group)
	switch {
	case r.class != cluster.MarkPaced && !(mark.Class == cluster.MarkPaced && r.hold == rules.ReasonWaitingForSurge && !mark.Surge):
		return allowed() // the class of the mark is wrong
	case mark.Surge && !r.requests:
		return fails(WrongRequest, "it needs no replacement beside it")
	case mark.Surge && requestsLeft(m, a) <= 0:
		return fails(TooManySurges, fmt.Sprintf("%d allocations of its group hold a request", t.requested))
	case !mark.Surge && !r.takesRoom() && !r.replaced:
		return fails(NotReplaced, "no healthy replacement stands by")
	case r.replaced && t.unanswered >= t.pace.MaxParallel:
		return fails(TooManySurges, fmt.Sprintf("%d allocations of its group are marked after a request and not stopped", t.unanswered))
	}
	return allowed()
}

// requestsLeft is how many more requests the group allows a drain.
func requestsLeft(m *snapshot, a *alloc) int {
	t := m.tally(a.group)
	held := t.requested
	if opinion.HoldsSurge(a.row) {
		held-- // the request of an earlier drain
	}
	return t.pace.Surge(a.node.drain()) - held
}

// addSurge adds the requests of a group, and the marks after requests.
func (w *Plan) addSurge(t *tally, g *candidates) {
	requested := t.requested
	for _, a := range g.requests {
		if requested < t.pace.Surge(a.node.drain()) {
			mark := markOf(a, cluster.MarkPaced)
			mark.Surge = true
			w.Marks = append(w.Marks, mark)
			requested++
		}
	}
	for i := range min(len(g.replaced), max(0, t.pace.MaxParallel-t.unanswered)) {
		w.Marks = append(w.Marks, markOf(g.replaced[i], cluster.MarkPaced))
	}
}

// planSurge counts a pending request, or a pending mark after one, and reports whether it is one.
func planSurge(r *reasons, a *alloc) bool {
	if a.leaving() || a.node.drain() == nil {
		return false
	}
	switch rule := r.now.rule(a); {
	case rule.requests:
		r.requests[a.group]++
	case rule.replaced:
		r.replaced[a.group]++
	default:
		return false
	}
	return true
}

// reasonForSurge is the reason of a healthy allocation that waits for its request, or for its mark after it.
func reasonForSurge(r *reasons, a *alloc, rule ruling) (rules.Reason, string) {
	planned, left, hold := r.planned[a.id()], surgeLeft(r, a, rule), rules.ReasonWaitingForSurge
	if rule.replaced {
		hold = rules.ReasonWaitingForRoom
	}
	if planned && (left >= 0 || r.mayLag) || !planned && left > 0 {
		return rules.ReasonWritePending, ": its group permits one more"
	}
	return hold, ""
}

// surgeLeft is how many more requests, or marks after requests, the group allows besides the pending ones.
func surgeLeft(r *reasons, a *alloc, rule ruling) int {
	if rule.requests {
		return requestsLeft(r.now, a) - r.requests[a.group]
	}
	t := r.now.tally(a.group)
	return t.pace.MaxParallel - t.unanswered - r.replaced[a.group]
}

// hiddenSurge is the reason that a request in flight, or a mark after one, hides.
func hiddenSurge(r *reasons, a *alloc, rule ruling) (rules.Reason, bool) {
	if rule.replaced {
		return rules.ReasonWaitingForRoom, surgeLeft(r, a, rule) < 0
	}
	return rules.ReasonWaitingForSurge, surgeLeft(r, a, rule) < 0
}

// runsOn reports whether an allocation has not ended, and the servers do not stop it.
func runsOn(a *cluster.Allocation) bool { return opinion.Live(a) && !opinion.Stopping(a) }

// judgeSurge judges the allocations that one which waits for a replacement beside it names: its last replacement, or
// those of the group that hold a request.
func judgeSurge(r *reasons, a *alloc, ar *rules.AllocExplanation) {
	var want []cluster.AllocID
	switch {
	case a.row.Standby:
		if original := opinion.OriginalOf(a.row, r.now.row); original != nil {
			want = []cluster.AllocID{original.ID}
		}
	case opinion.RequestedBy(a.row, a.node.drain()):
		if next := opinion.LastSuccessor(a.row, r.now.row); next != nil && (runsOn(next) || a.group.blocked() == nil) {
			want = []cluster.AllocID{next.ID}
		}
	default:
		for _, o := range a.group.members {
			pending := r.planned[o.id()] && !o.leaving() && o.node.drain() != nil && r.now.rule(o).requests
			if o != a && (opinion.HoldsSurge(o.row) || pending) {
				want = append(want, o.id())
			}
		}
		slices.Sort(want)
	}
	if !slices.Equal(ar.Outstanding, want) {
		r.find(WrongNumbers, of(a), "%q names %v and must name %v", ar.Reason, ar.Outstanding, want)
	}
}

// causesOfSurge returns the allocations for which one waits that waits for a replacement beside it.
func causesOfSurge(m *snapshot, ar *rules.AllocExplanation) (list []*alloc) {
	for _, id := range ar.Outstanding {
		if o := m.allocs[id]; o != nil {
			list = append(list, o)
		}
	}
	return list
}
