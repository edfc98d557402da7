package drainer

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drainingNode is what a term remembers of one draining node. All of it can be
// found again in the state.
type drainingNode struct {
	id    cluster.NodeID
	drain cluster.DrainID

	// marks are what the node wants marked now, completion is the end of its
	// drain if that is wanted, or nil.
	marks      []Mark
	completion *Completion
	// wait is what the drain was last seen to wait for after its deadline, or
	// zero.
	wait stageWait
	// passed says that its deadline was seen to have passed, or that it was forced.
	passed bool
	// pluginsTurn says that its storage plugins had their turn when it was last
	// planned, and had not all left.
	pluginsTurn bool
	// armed is the deadline the notifier was last told of; zero if it was told of
	// none, or has fired.
	armed time.Time
	// waitsFor are the jobs that the drain's contract waits for. They are
	// followed.
	waitsFor map[cluster.JobKey]bool
	// refused spaces what is refused of the node, heldBack is what: marks by
	// allocation, the completion as the empty id.
	refused  attempts
	heldBack map[cluster.AllocID]bool
}

// answered takes in what became of a mark, or of the completion if the id is
// empty. What is refused waits longer each time, in case plan and state cannot
// agree; the rest of the node does not wait for it.
func (n *drainingNode) answered(id cluster.AllocID, a Answer, refused bool, b backoff, now time.Time) {
	waits := !n.refused.wait(now).IsZero()
	switch {
	case !refused && a.Outcome == Applied && !waits:
		n.refused = attempts{}
	case refused && n.heldBack == nil:
		n.heldBack = map[cluster.AllocID]bool{}
	}
	if refused {
		n.heldBack[id] = true
		if !waits {
			n.refused.failed(b, now)
		}
	}
}

// holdBack takes out of a plan what has to wait after a refusal, and returns when
// to plan it again, or zero.
func (n *drainingNode) holdBack(plan *nodePlan, now time.Time) time.Time {
	again := n.refused.wait(now)
	if again.IsZero() {
		n.heldBack = nil
		return again
	}
	plan.marks = slices.DeleteFunc(plan.marks, func(m Mark) bool { return n.heldBack[m.Alloc] })
	if n.heldBack[""] {
		plan.completion = nil
	}
	return again
}

// rearm tells the notifier of a deadline that is still to come, if it does not
// know, and reports whether it did. A deadline that has passed, and force, need
// no timer: the plan has seen them.
func (n *drainingNode) rearm(notifier DrainDeadlineNotifier, s *cluster.DrainStrategy, now time.Time) (posted bool) {
	var deadline time.Time
	if s.Finite() && !s.Passed(now) {
		deadline = s.ForceDeadline
	}
	if deadline.Equal(n.armed) {
		return false
	}
	n.armed = deadline
	if deadline.IsZero() {
		notifier.Remove(n.id)
	} else {
		notifier.Watch(n.id, deadline)
	}
	return true
}

// stillWaits reports, without a look at all that stops, that nothing has come of
// a wait after the deadline: it has not run out, nothing new is to be asked, and
// what it lasts for is still there. The plan of a node that is held back has more
// to wait for, and that of a drain which ends when all are asked has nothing.
func (n *drainingNode) stillWaits(m *moment, node *cluster.Node) bool {
	if m.policy.Completion == Asked {
		return false
	}
	if n.heldBack != nil || n.wait.ends.IsZero() || !m.now.Before(n.wait.ends) || !node.Drain.Strategy.Passed(m.now) {
		return false
	}
	for _, s := range cluster.Stages() {
		if !node.Drain.Leaves(s) {
			continue
		}
		for range m.view.NodeAllocs(node.ID, s, false) {
			return false
		}
	}
	last := m.view.Alloc(n.wait.last)
	return last != nil && last.NodeID == node.ID && !last.ClientTerminal() && inTouch(last, node)
}

// groupsOn are the groups with allocations on the nodes that are not
// client-terminal, of the stage and those after it, each once.
func groupsOn(v View, from cluster.Stage, nodes ...cluster.NodeID) []cluster.GroupKey {
	seen := map[cluster.GroupKey]bool{}
	var groups []cluster.GroupKey
	for _, n := range nodes {
		for s := from; s < cluster.StageCount; s++ {
			for _, asked := range [...]bool{false, true} {
				for a := range v.NodeAllocs(n, s, asked) {
					if key := a.GroupKey(); !seen[key] {
						seen[key] = true
						groups = append(groups, key)
					}
				}
			}
		}
	}
	return groups
}
