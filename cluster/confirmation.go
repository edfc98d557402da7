package cluster

import "time"

// StopMarginOfNode is an additional wait before the servers rely on a node that they cannot reach to
// have stopped an allocation. It covers differences of clocks. It is a constant, because all servers
// must use the same value.
const StopMarginOfNode = time.Minute

// KillMarginOfNode is how long after the stop time the watchdog of a node kills the tasks that a client
// which lives has not stopped, because the client or its driver hangs. The servers rely on this kill:
//
//	contact + StopOnClientAfter + stop time + KillMarginOfNode
//	  < away since + StopOnClientAfter + stop time + StopMarginOfNode
//
// The servers notice later that a node is away than its client has sent the last answered heartbeat.
// So the difference of the margins is what remains for differences of clocks, and for the kill.
const KillMarginOfNode = 10 * time.Second

// Unconfirmed reports whether the allocation counts as ended although its tasks may run: the servers
// gave it up as lost, its client has not reported its end, and no entry has confirmed it.
func (a *Allocation) Unconfirmed() bool {
	return a.ClientStatus == ClientLost && a.ConfirmedAt == (time.Time{})
}

// StoppedByNodeAt returns when a node that the servers have not reached since a time must have stopped
// the allocation by itself, by its client or by the watchdog, if stopping takes stopTime. The time is
// zero if its group has no StopOnClientAfter, or if since is zero.
func StoppedByNodeAt(a *Allocation, since time.Time, stopTime time.Duration) time.Time {
	g := a.Job.Group(a.TaskGroup)
	if g == nil || g.Disconnect.StopOnClientAfter <= 0 || since.IsZero() {
		return time.Time{}
	}
	// Added one by one, because the sum of durations may overflow.
	return since.Add(g.Disconnect.StopOnClientAfter).Add(stopTime).Add(StopMarginOfNode)
}

// ConfirmableAt returns when time alone confirms that a lost allocation has ended. The node is the
// allocation's own, or nil if it does not exist. The time is zero if the servers reach the node: then
// only its client confirms the end. It is also zero if the node has been deleted and the allocation
// uses volumes, because the limits of the node are deleted too.
func ConfirmableAt(a *Allocation, n *Node) time.Time {
	g, since := a.Job.Group(a.TaskGroup), a.AwaySince
	switch {
	case !a.Unconfirmed() || g == nil || n.Reachable():
		return time.Time{}
	case n == nil && (len(g.Volumes) > 0 || a.Job.StoragePlugin()):
		return time.Time{}
	case n != nil && n.AwaySince.After(since): // the node was back for a while
		since = n.AwaySince
	}
	return StoppedByNodeAt(a, since, a.StopTimeOn(n))
}

// IsConfirmable reports whether time alone confirms, at now, that a lost allocation has ended.
func IsConfirmable(a *Allocation, n *Node, now time.Time) bool {
	at := ConfirmableAt(a, n)
	return !at.IsZero() && !now.Before(at)
}
