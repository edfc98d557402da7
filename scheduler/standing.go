package scheduler

import (
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
	// spent: it ended and is not placed again: it has had all replacements that its group permits, or its
	// group has Disconnect.NoReplace and nothing confirms its end. It holds its slot.
	spent
	// delayed: it ended, and its group delays its replacement. It holds its slot until then.
	delayed
	// kept: it runs or starts.
	kept
	// migrating: it is marked.
	migrating
	// lost: its node is down, gone, or disconnected for longer than LostAfter.
	lost
	// away: its node is disconnected, or is back and its client has not reported it yet.
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
		return v.standStopped(g, a), isDead(node) && !a.ClientTerminal()
	case a.ClientTerminal() && a.Canary() && a.Marked() && a.NextAllocation == "":
		return migrating, false
	case a.ClientTerminal():
		return v.standEnded(a), false
	case v.isLost(g, a, node) && a.Marked():
		return migrating, true
	case v.isLost(g, a, node) && awaitsSlot(g, a):
		return spent, true
	case v.isLost(g, a, node):
		return lost, true
	case isDisconnected(node):
		return away, false
	case a.Marked():
		return migrating, false
	case isReturning(v.view, a):
		return away, false
	}
	return kept, false
}

func (v jobView) standStopped(g *cluster.TaskGroup, a *cluster.Allocation) standing {
	switch {
	case v.isRetained(a):
		return done
	case isHeld(g, a):
		return spent
	case isStopOnly(a):
		return settled
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
	}
	switch r := v.job.Rescheduling(a, v.view.Alloc); {
	case r == nil && v.isSpent(a), r != nil && r.Spent:
		return spent
	case r.Waits(v.now):
		return delayed
	}
	return ended
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
func (v jobView) isSameWork(a *cluster.Allocation) bool { return v.job.IsWorkOf(a) }

// isSpent reports whether the allocation of a group without a policy has reached cluster.MaxReschedules. From the cluster version of
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
func (v jobView) holds(a *cluster.Allocation) bool { return !a.Standby && holdsActive(v, a) }

// holdsActive is holds for an allocation that is no standby, or as if it were none.
func holdsActive(v jobView, a *cluster.Allocation) bool {
	switch {
	case a.Canary() || v.group(a) == nil:
		return false
	case a.ServerTerminal():
		return v.isRetained(a) || isHeld(v.group(a), a)
	case a.ClientTerminal():
		s := v.standEnded(a)
		return s == done || s == spent || s == delayed
	case a.ClientStatus == cluster.ClientUnknown:
		return v.view.Node(a.NodeID).Reachable() || awaitsSlot(v.group(a), a)
	}
	return true
}
