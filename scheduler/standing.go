package scheduler

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// standing classifies an allocation for the plan of its job.
type standing uint8

const (
	// settled: it holds no slot and needs no action.
	settled standing = iota
	// owed: it was stopped for a replacement, or was lost, and has no replacement yet.
	owed
	// done: its work is complete. It holds its slot for good.
	done
	// spent: it ended and reached cluster.MaxReschedules. It holds its slot.
	spent
	// kept: it runs or starts.
	kept
	// migrating: it is marked.
	migrating
	// lost: its node is down, gone, or disconnected for longer than LostAfter.
	lost
	// away: its node is disconnected.
	away
	// ended: it ended unexpectedly. The plan places it again.
	ended
)

// jobView is a job in a view at a time.
type jobView struct {
	view View
	// job is the current version, or nil if it is gone.
	job *cluster.Job
	now time.Time
}

// group returns the group of the allocation. It returns nil if the job is stopped or gone,
// has no such group, or changed its type.
func (v jobView) group(a *cluster.Allocation) *cluster.TaskGroup {
	if v.job.Stopped() || (a.Job != nil && a.Job.Type != v.job.Type) {
		return nil
	}
	return v.job.Group(a.TaskGroup)
}

// stand returns the standing of an allocation of the group. lose means that the plan must
// mark it as lost, because no client will report its end.
func (v jobView) stand(g *cluster.TaskGroup, a *cluster.Allocation) (s standing, lose bool) {
	node := v.view.Node(a.NodeID)
	switch {
	case a.ServerTerminal():
		return v.standStopped(a), isDead(node) && !a.ClientTerminal()
	case a.ClientTerminal() && a.Canary() && a.Marked() && a.NextAllocation == "":
		return migrating, false
	case a.ClientTerminal():
		return v.standEnded(a), false
	case v.isLost(g, a, node) && a.Marked():
		return migrating, true
	case v.isLost(g, a, node):
		return lost, true
	case isDisconnected(node):
		return away, false
	case a.Marked():
		return migrating, false
	}
	return kept, false
}

func (v jobView) standStopped(a *cluster.Allocation) standing {
	switch {
	case v.isRetained(a):
		return done
	case a.NextAllocation == "" && cluster.ReplacedAfter(a.DesiredDescription):
		return owed
	}
	return settled
}

func (v jobView) standEnded(a *cluster.Allocation) standing {
	switch {
	case a.JobType().ToCompletion() && !v.isSameWork(a):
		return settled
	case a.JobType().ToCompletion() && a.ClientStatus == cluster.ClientComplete:
		return done
	case a.NextAllocation != "":
		return settled
	case v.isSpent(a):
		return spent
	}
	return ended
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

// isRetained reports whether a stopped allocation keeps its slot: a batch allocation that a
// drain stopped at its deadline does not run again. One that was stopped as surplus has given
// its slot up, from cluster version 2 on.
func (v jobView) isRetained(a *cluster.Allocation) bool {
	isSurplus := a.DesiredDescription != cluster.DescMigrating && v.view.ClusterVersion() >= 2
	return isStopOnly(a) && v.isSameWork(a) && !isSurplus
}

// isStopOnly reports whether the allocation's mark excludes a replacement.
func isStopOnly(a *cluster.Allocation) bool {
	return a.JobType() == cluster.JobBatch && a.DesiredTransition.MigrateDisablePlacement
}

// isSameWork reports whether the current version of the job has the same tasks and disk as
// the allocation's version.
func (v jobView) isSameWork(a *cluster.Allocation) bool {
	if a.Job == nil {
		return true // a damaged record: do not run it again
	}
	was, is := a.Job.Group(a.TaskGroup), v.job.Group(a.TaskGroup)
	return was != nil && is != nil && was.EphemeralDisk == is.EphemeralDisk && slices.EqualFunc(was.Tasks, is.Tasks, (*cluster.Task).Equal)
}

// isSpent reports whether the allocation has reached cluster.MaxReschedules. From the cluster version of
// volumes on, failures of other tasks or another disk do not count: a job that was mended has all its
// tries again.
func (v jobView) isSpent(a *cluster.Allocation) bool {
	if a.DesiredTransition.ForceReschedule || !v.isSameWork(a) {
		return false
	}
	onlySameWork := v.view.ClusterVersion() >= cluster.VersionOfVolumes
	for range cluster.MaxReschedules {
		a = v.view.Alloc(a.PreviousAllocation)
		if a == nil || a.DesiredDescription != cluster.DescRescheduled || (onlySameWork && !v.isSameWork(a)) {
			return false
		}
	}
	return true
}

// holds reports whether the allocation holds one of its group's slots in the state, before
// any plan.
func (v jobView) holds(a *cluster.Allocation) bool {
	switch {
	case a.Canary() || v.group(a) == nil:
		return false
	case a.ServerTerminal():
		return v.isRetained(a)
	case a.ClientTerminal():
		s := v.standEnded(a)
		return s == done || s == spent
	case a.ClientStatus == cluster.ClientUnknown:
		return v.view.Node(a.NodeID).Reachable()
	}
	return true
}

// successorRuns reports whether the last of the allocation's successive replacements runs.
func (v jobView) successorRuns(a *cluster.Allocation) bool {
	next := v.view.Alloc(a.NextAllocation)
	for range cluster.MaxReschedules { // bounds a damaged chain that forms a circle
		if next == nil || next.NextAllocation == "" {
			break
		}
		next = v.view.Alloc(next.NextAllocation)
	}
	return next != nil && next.DesiredStatus == cluster.DesiredRun && next.ClientStatus == cluster.ClientRunning &&
		v.view.Node(next.NodeID).Reachable()
}
