package drainer

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drainingNode is what a term remembers of one draining node. All of it can be
// found again in the state.
type drainingNode struct {
	id       cluster.NodeID
	drain    cluster.DrainID
	revision cluster.Revision

	// marks are what the node wants marked now, completion is the end of its
	// drain if that is wanted, or nil.
	marks      []Mark
	completion *Completion
	// stage is the stage the node was last seen in.
	stage cluster.Stage
	// armed is the deadline the notifier was last told of; nil if it was told of
	// none, or has fired.
	armed *Deadline
	// waitsFor are the jobs that the drain's contract waits for. They are
	// followed.
	waitsFor map[cluster.JobKey]bool
	// refused spaces the plans of a node whose writes are refused.
	refused attempts
}

// deadlineOf is the deadline to watch for a drain, or nil if it has none.
func deadlineOf(s *cluster.DrainStrategy) *Deadline {
	switch {
	case s.Forced():
		return &Deadline{Force: true}
	case s.Finite():
		return &Deadline{At: s.ForceDeadline}
	}
	return nil
}

// adopt takes over what a plan wants.
func (n *drainingNode) adopt(node *cluster.Node, plan nodePlan) {
	n.marks, n.completion = plan.marks, nil
	if plan.done {
		n.completion = &Completion{Node: n.id, Drain: node.Drain.ID, Revision: node.Drain.Revision}
	}
}

// rearm tells the notifier of a deadline that is still to come, if it does not
// know. A deadline that has passed needs no timer: the plan has seen it.
func (n *drainingNode) rearm(notifier DrainDeadlineNotifier, s *cluster.DrainStrategy, now time.Time) (posted bool) {
	d := deadlineOf(s)
	if d != nil && s.Passed(now) {
		d = nil
	}
	switch {
	case d == nil && n.armed == nil:
		return false
	case d == nil:
		notifier.Remove(n.id)
	case n.armed != nil && *n.armed == *d:
		return false
	default:
		notifier.Watch(n.id, *d)
	}
	n.armed = d
	return true
}

// groupsOn are the groups with allocations on the node that are not
// client-terminal, of the stage and those after it.
func groupsOn(v View, n cluster.NodeID, from cluster.Stage) []cluster.GroupKey {
	seen := map[cluster.GroupKey]bool{}
	var groups []cluster.GroupKey
	for _, s := range cluster.Stages() {
		if s < from {
			continue
		}
		for _, asked := range [...]bool{false, true} {
			for a := range v.NodeAllocs(n, s, asked) {
				if key := a.GroupKey(); !seen[key] {
					seen[key] = true
					groups = append(groups, key)
				}
			}
		}
	}
	return groups
}
