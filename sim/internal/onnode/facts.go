package onnode

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// facts are the state that all parts of a judge share.
type facts struct {
	invariant.Findings
	now     time.Time
	node    cluster.NodeID
	allocs  map[cluster.AllocID]*alloc
	trouble trouble
	// since is when the present client started, or zero.
	since time.Time
	// blocked is when a client last could not reach the servers, or was frozen, or had a full disk.
	blocked time.Time
	// order are the allocations in the order in which they first appeared.
	order []*alloc
	// starts are the task processes of each cgroup, in the order of their start.
	starts map[string][]scripted.Identity
}

func (f *facts) find(c invariant.Check, id cluster.AllocID, format string, args ...any) {
	f.Add(maxViolations, c, invariant.Violation{At: f.now, Node: f.node, Alloc: id}, format, args...)
}

// alloc returns the judge's state of an allocation.
func (f *facts) alloc(id cluster.AllocID) *alloc {
	a := f.allocs[id]
	if a == nil {
		a = &alloc{id: id, terminated: map[string]time.Time{}, unreserved: map[string]time.Time{}, results: map[string]results{}}
		f.allocs[id] = a
		f.order = append(f.order, a)
	}
	return a
}

// taskRuns is like taskLives, for processes that can die.
func (f *facts) taskRuns(n *machine.Node, id cluster.AllocID, task string) bool {
	for p := range n.Machine().EachLivingIn(string(id) + ":" + task) {
		if !p.Stuck && !f.abandoned(&p) {
			return true
		}
	}
	return false
}

// taskLives reports whether a process of a task runs, apart from processes that only a driver with
// trouble can end.
func (f *facts) taskLives(n *machine.Node, id cluster.AllocID, task string) bool {
	for p := range n.Machine().EachLivingIn(string(id) + ":" + task) {
		if !f.abandoned(&p) {
			return true
		}
	}
	return false
}
