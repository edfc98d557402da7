package scheduler

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// tally counts who holds the slots of a job's groups, while a plan is judged.
type tally struct {
	look
	// groups counts the slots held of each group, berths those of each group on
	// each node if the job runs on every node: it has one slot in a berth.
	groups map[string]int
	berths map[berthKey]int
	// marked counts those of the slots of each group whose holders are marked and
	// not stopped: they are given up before any other.
	marked map[string]int
}

type berthKey struct {
	group string
	node  cluster.NodeID
}

func newTally(l look, job cluster.JobKey) *tally {
	t := &tally{look: l, groups: make(map[string]int), berths: make(map[berthKey]int), marked: make(map[string]int)}
	for a := range l.view.AllocsByJob(job) {
		if t.holds(a) {
			t.add(a, 1)
		}
	}
	return t
}

// holds is [look.holds], and knows that sysbatch runs once.
func (t *tally) holds(a *cluster.Allocation) bool {
	return t.look.holds(a) || (t.group(a) != nil && t.ranOnce(a))
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

// leave takes an allocation that is stopped out of its slot, unless it keeps it:
// a mark ends batch that is not to be placed again, and sysbatch, for good.
func (t *tally) leave(s cluster.PlanStop, a *cluster.Allocation) {
	if !t.holds(a) {
		return
	}
	forGood := s.Migrate && t.isSameWork(a) && (isStopOnly(a) || a.JobType() == cluster.JobSysBatch)
	if !forGood {
		t.add(a, -1)
	}
}

// come gives a slot to an allocation that is placed.
func (t *tally) come(a *cluster.Allocation) {
	if !a.Canary() {
		t.add(a, 1)
	}
}

// full says why there is no slot for one more, or is empty.
func (t *tally) full(g *cluster.TaskGroup, a *cluster.Allocation) string {
	switch {
	case a.Canary():
		return ""
	case t.job.Type.EveryNode() && t.berths[berthKey{g.Name, a.NodeID}] > 0:
		return fmt.Sprintf("node %s has one of group %s", a.NodeID, g.Name)
	case !t.job.Type.EveryNode() && t.groups[g.Name] >= g.Count:
		return fmt.Sprintf("group %s has all of its %d", g.Name, g.Count)
	}
	return ""
}
