package opinion

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Versioned is a state that has a cluster version. A state without one follows the newest contract.
type Versioned interface {
	ClusterVersion() cluster.Version
}

// CountsUnconfirmed is the first cluster version in which records count unconfirmed allocations.
const CountsUnconfirmed cluster.Version = 8

// NamesConfirmations is the first cluster version in which a record names the confirmation of another drain.
const NamesConfirmations cluster.Version = 9

// margin is how long the servers wait after the time that a node needs to stop an allocation.
const margin = time.Minute

// Unconfirmed reports whether the servers gave the allocation up as lost and nothing confirms its
// end.
func Unconfirmed(a *cluster.Allocation) bool {
	return a.ClientStatus == "lost" && a.ConfirmedAt.IsZero()
}

// MayRun reports whether the tasks of an allocation may run: its client has not reported the end, and
// nothing confirms it.
func MayRun(a *cluster.Allocation) bool { return Live(a) || Unconfirmed(a) }

// Counted reports whether the record of an ended drain counts an allocation of its node as unconfirmed:
// it had to leave, its tasks might run at the end of the drain, and they may run now. A cancelled drain
// made only those leave that it had marked and that stop. If the drain ignores system jobs, a storage
// plugin had to leave if the drain marked it. Both hold only for what was not lost at the end.
func Counted(a *cluster.Allocation, record *cluster.Drain) bool {
	if a.NodeID != record.NodeID || LostByRequest(a, record) || !MayRun(a) || a.CreateIndex > record.EndIndex {
		return false
	}
	t := a.DesiredTransition
	marked := t.Migrate && t.Drain == record.ID
	switch lostThen := Unconfirmed(a) && a.AllocModifyIndex <= record.EndIndex; {
	case lostThen:
		return true
	case record.Outcome == "cancelled":
		return marked && Stopping(a)
	case record.Strategy.IgnoreSystemJobs && StageOf(a) == Plugin:
		return marked
	}
	return true
}

// LostByRequest reports whether the drain leaves a lost allocation on its node by request: it is
// one of a system job. A plugin serves no lost allocation.
func LostByRequest(a *cluster.Allocation, d *cluster.Drain) bool {
	return d.Strategy.IgnoreSystemJobs && StageOf(a) == System
}

// StoppedByItself returns when the node of a lost allocation has stopped it without the servers:
// its group has a stop_on_client_after, and the servers have not reached the node since. The time
// is zero if this never happens. The node is the allocation's own, or nil if it does not exist.
// Then the limits of a node with volumes are not in the state, so the time is zero for an
// allocation with volumes and for a storage plugin.
func StoppedByItself(a *cluster.Allocation, n *cluster.Node) time.Time {
	g, since := groupOf(a.Job, a.TaskGroup), a.AwaySince
	switch {
	case !Unconfirmed(a) || g == nil || g.Disconnect.StopOnClientAfter <= 0 || Reachable(n):
		return time.Time{}
	case n == nil && (len(g.Volumes) > 0 || StageOf(a) == Plugin):
		return time.Time{}
	case n != nil && n.AwaySince.After(since):
		since = n.AwaySince
	}
	if since.IsZero() {
		return since
	}
	return StoppedBy(a, n, since.Add(g.Disconnect.StopOnClientAfter)).Add(margin)
}
