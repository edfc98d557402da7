package scheduler

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// tally counts the occupied slots of a job's groups while [Check] judges a plan.
type tally struct {
	jobView
	// groups counts the occupied slots of each group. berths counts them by group and
	// node if the job runs on every node; there is one slot on each node.
	groups map[string]int
	berths map[berthKey]int
	// marked counts the slots of marked allocations that are not stopped, by group: they
	// are given up before any other.
	marked map[string]int
	// changed counts, by name, the allocations that hold a slot and whose row or node was written
	// after the plan's snapshot: the plan may have taken their slot for a free one.
	changed map[string]int
	// active are the standbys whose original the plan stops: they have its slot.
	active map[cluster.AllocID]bool
	// snapshot is the index of the plan's snapshot.
	snapshot uint64
}

type berthKey struct {
	group string
	node  cluster.NodeID
}

func newTally(v jobView, plan *cluster.Plan) *tally {
	t := &tally{
		jobView: v, groups: make(map[string]int), berths: make(map[berthKey]int), marked: make(map[string]int),
		changed: make(map[string]int), active: make(map[cluster.AllocID]bool), snapshot: plan.SnapshotIndex,
	}
	for a := range v.view.UnconcludedAllocs(plan.Eval.JobKey()) {
		if !t.holds(a) {
			continue
		}
		t.add(a, 1)
		if t.isChanged(a) {
			t.changed[a.Name]++
		}
	}
	return t
}

// holds is [jobView.holds] after the accepted stops, and includes sysbatch allocations that have had their only run.
func (t *tally) holds(a *cluster.Allocation) bool {
	return t.jobView.holds(a) || t.active[a.ID] && holdsActive(t.jobView, a) || (t.group(a) != nil && t.ranOnce(a))
}

// isChanged reports whether the allocation or its node was written after the plan's snapshot.
func (t *tally) isChanged(a *cluster.Allocation) bool {
	node := t.view.Node(a.NodeID)
	return a.ModifyIndex > t.snapshot || (node != nil && node.ModifyIndex > t.snapshot)
}

func (t *tally) add(a *cluster.Allocation, n int) {
	t.groups[a.TaskGroup] += n
	if t.job.Type.EveryNode() {
		t.berths[berthKey{a.TaskGroup, a.NodeID}] += n
	}
	if a.Marked() && !a.Terminal() {
		t.marked[a.TaskGroup] += n
	}
}

// leave frees the slot of a stopped allocation. Marked sysbatch allocations, marked batch allocations
// without a replacement, and lost and unknown ones that no other may replace keep their slot.
func (t *tally) leave(s cluster.PlanStop, a *cluster.Allocation) {
	if !t.holds(a) {
		return
	}
	forGood := s.Migrate && t.isSameWork(a) && (isStopOnly(a) || a.JobType() == cluster.JobSysBatch) ||
		(s.Unknown || s.Lost && s.Description == cluster.DescLost) && awaitsSlot(t.group(a), a)
	if forGood {
		return
	}
	if standby := lastStandby(t.jobView, a); standby != nil && holdsActive(t.jobView, standby) {
		t.active[standby.ID] = true
		return
	}
	t.add(a, -1)
	if t.isChanged(a) {
		t.changed[a.Name]--
	}
}

// come counts the slot of a placed allocation.
func (t *tally) come(a *cluster.Allocation) {
	if !a.Canary() && !a.Standby {
		t.add(a, 1)
	}
}

// full returns why there is no slot for the allocation, or the empty string.
func (t *tally) full(g *cluster.TaskGroup, a *cluster.Allocation) string {
	switch {
	case a.Canary(), a.Standby:
		return ""
	case t.job.Type.EveryNode() && t.berths[berthKey{g.Name, a.NodeID}] > 0:
		return fmt.Sprintf("node %s has one of group %s", a.NodeID, g.Name)
	case !t.job.Type.EveryNode() && t.groups[g.Name] >= g.Count:
		return fmt.Sprintf("group %s has all of its %d", g.Name, g.Count)
	case !t.job.Type.EveryNode() && t.changed[a.Name] > 0 && t.view.ClusterVersion() >= 2:
		return fmt.Sprintf("another allocation has the name %s", a.Name)
	}
	return ""
}
