package placement

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// slots are the slots of one group.
type slots struct {
	group *cluster.TaskGroup
	// held are the allocations that hold a slot. Some have ended.
	held []*cluster.Allocation
}

// maxReschedules is the largest number of failures in a row after which the scheduler places a
// replacement in a group without a policy.
const maxReschedules = 10

// longestChain bounds a chain of replacements.
const longestChain = 1000

// onEveryNode reports whether each group of the job has one slot on each node.
func onEveryNode(j *cluster.Job) bool { return onEvery(j.Type) }

// runs reports whether an allocation is live and the scheduler has not stopped it.
func runs(a *cluster.Allocation) bool { return opinion.Live(a) && !opinion.Stopping(a) }

// Holds reports whether an allocation of the group holds a slot in the state at a time. The group is that of
// the current job.
func Holds(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup, at time.Time) bool {
	switch {
	case opinion.Canary(a), a.Standby: // the slot is that of its original
		return false
	case opinion.Stopping(a):
		return stoppedForGood(a) && SameWork(a, g) || opinion.Unconfirmed(a) && awaited(a, g) && a.DesiredDescription == "alloc is lost since its node is down"
	case !opinion.Live(a):
		return endedForGood(s, a, g) || waits(s, a, g, at)
	case a.ClientStatus == "unknown":
		return opinion.Reachable(s.Node(a.NodeID)) || awaited(a, g)
	}
	return true
}

// awaited reports whether the group permits no replacement of an allocation that cannot be reached. A drain
// that moves it replaces it all the same.
func awaited(a *cluster.Allocation, g *cluster.TaskGroup) bool {
	return g.Disconnect.NoReplace && !a.DesiredTransition.Migrate && a.NextAllocation == ""
}

// stoppedForGood reports whether the scheduler never runs the work of a stopped allocation again:
// batch work that a deadline stopped, or sysbatch work that a mark stopped. The description
// distinguishes them from a surplus allocation, which holds no slot after its stop.
func stoppedForGood(a *cluster.Allocation) bool {
	switch opinion.TypeOf(a) {
	case "batch":
		return a.DesiredTransition.MigrateDisablePlacement && a.DesiredDescription == "alloc is being migrated"
	case "sysbatch":
		return a.DesiredDescription == "alloc not needed as node is tainted"
	}
	return false
}

// endedForGood reports whether an allocation that ended by itself keeps its slot, because its work
// is done or because it has failed too often.
func endedForGood(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup) bool {
	switch kind := opinion.TypeOf(a); {
	case !SameWork(a, g):
		return false
	case kind == "sysbatch", kind == "batch" && a.ClientStatus == "complete":
		return true
	}
	return GaveUp(s, a, g)
}

// GaveUp reports whether the scheduler replaces an allocation that ended by itself no more, because it has failed
// too often.
func GaveUp(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup) bool {
	if g.Reschedule != nil && !onEvery(opinion.TypeOf(a)) {
		r, has := RetryOf(s, a, g)
		return has && r.Spent
	}
	return a.NextAllocation == "" && SameWork(a, g) && !a.DesiredTransition.ForceReschedule && Rescheduled(s, a, g) >= maxReschedules
}

func onEvery(t cluster.JobType) bool { return t == "system" || t == "sysbatch" }

// waits reports whether an allocation that ended keeps its slot until its replacement is due.
func waits(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup, at time.Time) bool {
	r, has := RetryOf(s, a, g)
	return has && r.Early(at)
}

// Rescheduled counts the direct predecessors of an allocation that failed with the tasks and the
// disk of the group, and were replaced. It stops at maxReschedules+1.
func Rescheduled(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup) int {
	n := 0
	for n <= maxReschedules {
		a = s.Alloc(a.PreviousAllocation)
		if a == nil || a.DesiredDescription != "alloc was rescheduled because it failed" || !SameWork(a, g) {
			break
		}
		n++
	}
	return n
}

// SameWork reports whether the current group has the tasks and the disk for which the allocation
// was placed.
func SameWork(a *cluster.Allocation, g *cluster.TaskGroup) bool {
	if a.Job == nil {
		return true // a damaged row, which the scheduler does not run again
	}
	at := slices.IndexFunc(a.Job.TaskGroups, func(was *cluster.TaskGroup) bool { return was.Name == g.Name })
	if at < 0 {
		return false
	}
	was := a.Job.TaskGroups[at]
	return was == g || was.EphemeralDisk == g.EphemeralDisk &&
		slices.EqualFunc(was.Tasks, g.Tasks, (*cluster.Task).Equal)
}

// judgeSlots checks the slots of the groups in which the plan placed allocations.
func (p *plan) judgeSlots() {
	for _, a := range p.placed {
		s := p.groups[a.TaskGroup]
		if s == nil || opinion.Canary(a) || a.Standby {
			continue
		}
		inSlot, sameName := 0, 0
		for _, other := range s.held {
			if onEveryNode(p.job) && other.NodeID != a.NodeID {
				continue
			}
			inSlot++
			if other.Name == a.Name {
				sameName++
			}
		}
		most := s.group.Count
		if onEveryNode(p.job) {
			most = 1
		}
		switch {
		case inSlot > most:
			p.report(AboveCount, a, "%d allocations hold slots, and there are %d slots", inSlot, most)
		case sameName > 1:
			p.report(NameTwice, a, "another allocation in a slot has the name %s", a.Name)
		}
	}
}
