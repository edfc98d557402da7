package scheduler

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// AwayStatus returns the status at now of a node that sends no heartbeats: disconnected while an
// allocation on it is awaited, and down when none is. until is when the last of them becomes lost, or
// zero if the node is down. The result is the status of the node if it is down already.
func AwayStatus(v View, id cluster.NodeID, now time.Time) (status cluster.NodeStatus, until time.Time) {
	n := v.Node(id)
	if isDead(n) {
		return cluster.NodeDown, time.Time{}
	}
	if !isDisconnected(n) {
		n = n.Copy()
		n.Status, n.StatusChangedAt = cluster.NodeDisconnected, now
	}
	for a := range v.LiveAllocsByNode(id) {
		state := jobView{view: v, job: v.Job(a.JobKey()), now: now}
		if g := state.group(a); g != nil && !state.isLost(g, a, n) {
			if at := lostAt(g, a, n); at.After(until) {
				until = at
			}
		}
	}
	if until.IsZero() {
		return cluster.NodeDown, until
	}
	return cluster.NodeDisconnected, until
}

// isDead reports whether no client will report about the node's allocations.
func isDead(n *cluster.Node) bool { return n == nil || n.Status == cluster.NodeDown }

func isDisconnected(n *cluster.Node) bool { return n != nil && n.Status == cluster.NodeDisconnected }

// isLost reports whether an allocation that has not ended is lost because of its node.
func (v jobView) isLost(g *cluster.TaskGroup, a *cluster.Allocation, node *cluster.Node) bool {
	if !isDisconnected(node) {
		return isDead(node)
	}
	return a.ClientStatus == cluster.ClientPending || g.Disconnect.LostAfter == 0 ||
		!v.now.Before(lostAt(g, a, node))
}

// lostAt is when an allocation on a disconnected node counts as lost.
func lostAt(g *cluster.TaskGroup, a *cluster.Allocation, node *cluster.Node) time.Time {
	since := node.StatusChangedAt
	if since.IsZero() {
		since = a.ModifyTime
	}
	return since.Add(g.Disconnect.LostAfter)
}

// isReturning reports whether the node of an unknown allocation is back, and its client has not reported
// the allocation yet. A plan does not stop it before the report, which decides what runs. Below the
// cluster version of confirmations it counts as one that runs.
func isReturning(v View, a *cluster.Allocation) bool {
	return a.ClientStatus == cluster.ClientUnknown && v.ClusterVersion() >= cluster.VersionOfConfirmation
}

// awaitsSlot reports whether an allocation on a disconnected node keeps its slot: its group places no
// other one, and no mark requires one.
func awaitsSlot(g *cluster.TaskGroup, a *cluster.Allocation) bool {
	return g.Disconnect.NoReplace && !a.Marked() && a.NextAllocation == ""
}

// markFreesSlot reports whether an allocation would keep its slot without its mark. The group may be nil.
func markFreesSlot(g *cluster.TaskGroup, a *cluster.Allocation) bool {
	return g != nil && g.Disconnect.NoReplace && a.Marked() && a.NextAllocation == ""
}

// IsHeld reports whether the allocation keeps its slot until something confirms that it has ended. The
// confirmation requires an evaluation of its job.
func IsHeld(v View, a *cluster.Allocation) bool {
	return isHeld(jobView{view: v, job: v.Job(a.JobKey())}.group(a), a)
}

// isHeld reports whether a stopped allocation keeps its slot because its tasks may run on a node that
// cannot be reached, and its group places no other one. The group may be nil.
func isHeld(g *cluster.TaskGroup, a *cluster.Allocation) bool {
	return g != nil && a.Unconfirmed() && a.DesiredDescription == cluster.DescLost && awaitsSlot(g, a)
}
