package scheduler

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// MaxReschedules is how many times in a row an allocation that ended when it
// should not have is placed again. After that its slot stays empty until the
// job's work changes: a task that never runs must not keep the log busy.
const MaxReschedules = 10

// standing is where an allocation stands with its job.
type standing uint8

const (
	// settled: it holds no slot and nothing is to be done about it.
	settled standing = iota
	// owed: it was stopped to be replaced, or was lost, and has no replacement.
	owed
	// done: its work is done, it holds its slot for good.
	done
	// spent: it ended and has been placed again too often. It holds its slot.
	spent
	// kept: it runs, or is about to.
	kept
	// migrating: it is marked.
	migrating
	// lost: its node is down, gone, or out of touch for too long.
	lost
	// away: its node is out of touch.
	away
	// ended: it ended when it should not have, and is to be placed again.
	ended
)

// look is a job as a view and a time show it.
type look struct {
	view View
	// job is the current version, or nil if it is gone.
	job *cluster.Job
	now time.Time
}

// group returns the group that wants the allocation, or nil if none does: the
// job is stopped or gone, has no such group, or is of another type by now.
func (l look) group(a *cluster.Allocation) *cluster.TaskGroup {
	if l.job.Stopped() || (a.Job != nil && a.Job.Type != l.job.Type) {
		return nil
	}
	return l.job.Group(a.TaskGroup)
}

// stand says where an allocation of the group stands. lose says that servers are
// to write that it is lost, since no client will say how it ended.
func (l look) stand(g *cluster.TaskGroup, a *cluster.Allocation) (s standing, lose bool) {
	node := l.view.Node(a.NodeID)
	switch {
	case a.ServerTerminal():
		return l.standStopped(a), isDead(node) && !a.ClientTerminal()
	case a.ClientTerminal() && a.Canary() && a.Marked() && a.NextAllocation == "":
		return migrating, false
	case a.ClientTerminal():
		return l.standEnded(a), false
	case l.isLost(g, a, node) && a.Marked():
		return migrating, true
	case l.isLost(g, a, node):
		return lost, true
	case isDisconnected(node):
		return away, false
	case a.Marked():
		return migrating, false
	}
	return kept, false
}

func (l look) standStopped(a *cluster.Allocation) standing {
	switch {
	case l.isRetained(a):
		return done
	case a.NextAllocation == "" && isReplaced(a.DesiredDescription):
		return owed
	}
	return settled
}

// isReplaced reports whether what is stopped with the description is to be
// replaced.
func isReplaced(description string) bool {
	return description == cluster.DescMigrating || description == cluster.DescLost || description == cluster.DescRescheduled
}

func (l look) standEnded(a *cluster.Allocation) standing {
	switch {
	case a.JobType().ToCompletion() && !l.isSameWork(a):
		return settled
	case a.JobType().ToCompletion() && a.ClientStatus == cluster.ClientComplete:
		return done
	case a.NextAllocation != "":
		return settled
	case l.isSpent(a):
		return spent
	}
	return ended
}

// isDead reports whether nobody will ever speak for the node's allocations.
func isDead(n *cluster.Node) bool { return n == nil || n.Status == cluster.NodeDown }

func isDisconnected(n *cluster.Node) bool { return n != nil && n.Status == cluster.NodeDisconnected }

// isLost reports whether an allocation that has not ended is lost with its node.
func (l look) isLost(g *cluster.TaskGroup, a *cluster.Allocation, node *cluster.Node) bool {
	if !isDisconnected(node) {
		return isDead(node)
	}
	return a.ClientStatus == cluster.ClientPending || g.Disconnect.LostAfter == 0 ||
		!l.now.Before(lostAt(g, a, node))
}

// lostAt is when an allocation on a disconnected node counts as lost.
func lostAt(g *cluster.TaskGroup, a *cluster.Allocation, node *cluster.Node) time.Time {
	since := node.StatusChangedAt
	if since.IsZero() {
		since = a.ModifyTime
	}
	return since.Add(g.Disconnect.LostAfter)
}

// isRetained reports whether a stopped allocation keeps its slot: batch that a
// drain stopped at its deadline is not run again elsewhere.
func (l look) isRetained(a *cluster.Allocation) bool {
	return isStopOnly(a) && l.isSameWork(a)
}

// isStopOnly reports whether the allocation's mark asks for no replacement.
func isStopOnly(a *cluster.Allocation) bool {
	return a.JobType() == cluster.JobBatch && a.DesiredTransition.MigrateDisablePlacement
}

// isSameWork reports whether the job's current version would have the
// allocation do what it did.
func (l look) isSameWork(a *cluster.Allocation) bool {
	if a.Job == nil {
		return true // a damaged record: not running it again is the careful answer
	}
	was, is := a.Job.Group(a.TaskGroup), l.job.Group(a.TaskGroup)
	return was != nil && is != nil && was.EphemeralDisk == is.EphemeralDisk && slices.EqualFunc(was.Tasks, is.Tasks, isSameTask)
}

func isSameTask(a, b *cluster.Task) bool {
	return a == b || (a != nil && b != nil && *a == *b)
}

// isSpent reports whether the allocation is the last of too many that ended one
// after the other.
func (l look) isSpent(a *cluster.Allocation) bool {
	if a.DesiredTransition.ForceReschedule || !l.isSameWork(a) {
		return false
	}
	for range MaxReschedules {
		a = l.view.Alloc(a.PreviousAllocation)
		if a == nil || a.DesiredDescription != cluster.DescRescheduled {
			return false
		}
	}
	return true
}

// holds reports whether the allocation holds one of its group's slots, in the
// state as it is: before anybody acts on where it stands.
func (l look) holds(a *cluster.Allocation) bool {
	switch {
	case a.Canary() || l.group(a) == nil:
		return false
	case a.ServerTerminal():
		return l.isRetained(a)
	case a.ClientTerminal():
		s := l.standEnded(a)
		return s == done || s == spent
	case a.ClientStatus == cluster.ClientUnknown:
		return l.view.Node(a.NodeID).Reachable()
	}
	return true
}

// successorRuns reports whether the allocation was replaced, and what took its
// place in the end runs.
func (l look) successorRuns(a *cluster.Allocation) bool {
	next := l.view.Alloc(a.NextAllocation)
	for range MaxReschedules { // bounds a damaged chain that bites its tail
		if next == nil || next.NextAllocation == "" {
			break
		}
		next = l.view.Alloc(next.NextAllocation)
	}
	return next != nil && next.DesiredStatus == cluster.DesiredRun && next.ClientStatus == cluster.ClientRunning &&
		l.view.Node(next.NodeID).Reachable()
}
