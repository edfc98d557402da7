package scheduler

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// pair is an allocation that came back, and the allocation that replaces it.
type pair struct{ original, replacement *cluster.Allocation }

// reconcile stops one of each two allocations of which one came back and the other replaces it, if the
// group has a surplus. It returns the surplus that is left. A pair whose replacement is kept, and does
// not run yet, is left as it is. The report that the replacement runs makes the next evaluation. reconcile
// returns such pairs, and each counts as one allocation.
func (p *planner) reconcile(g *cluster.TaskGroup, s *slots, surplus int) (left int, waiting []pair) {
	if p.view.ClusterVersion() < cluster.VersionOfConfirmation {
		return surplus, nil
	}
	stops := map[cluster.AllocID]string{}
	for _, original := range s.kept {
		next := cluster.LastSuccessor(original, p.view.Alloc)
		if surplus <= 0 || next == nil || stops[original.ID] != "" || stops[next.ID] != "" || !s.keeps(next.ID) {
			continue
		}
		surplus--
		switch running := runs(p.view, next); {
		case keepsReplacement(p.view, g, original) && !running:
			waiting = append(waiting, pair{original, next})
		case keepsReplacement(p.view, g, original), running && original.ClientStatus != cluster.ClientRunning:
			stops[original.ID] = cluster.DescReconnected
		default:
			stops[next.ID] = cluster.DescOriginalReturned
		}
	}
	s.kept = slices.DeleteFunc(s.kept, func(a *cluster.Allocation) bool {
		if stops[a.ID] != "" {
			p.draft.stop(a, stops[a.ID])
		}
		return stops[a.ID] != ""
	})
	return surplus, waiting
}

// stopBlocked stops the replacements that would wait for ever: see [isBlocked]. A group that lacks allocations has
// no surplus, so reconcile does not stop them.
func stopBlocked(p *planner, g *cluster.TaskGroup, s *slots) {
	s.kept = slices.DeleteFunc(s.kept, func(a *cluster.Allocation) bool {
		blocked := isBlocked(p.jobView, g, a)
		if blocked {
			p.draft.stop(a, cluster.DescOriginalReturned)
		}
		return blocked
	})
}

// isBlocked reports whether an allocation waits for the data of the one that it replaces, and that one runs again: the
// data moves when it has ended.
func isBlocked(v jobView, g *cluster.TaskGroup, a *cluster.Allocation) bool {
	if !g.MovesData() || a.ClientStatus != cluster.ClientPending || v.view.ClusterVersion() < cluster.VersionOfData {
		return false
	}
	original := v.view.Alloc(a.PreviousAllocation)
	return original != nil && runs(v.view, original) && !original.Marked()
}

// keeps reports whether the allocation is one that runs or starts.
func (s *slots) keeps(id cluster.AllocID) bool {
	return slices.ContainsFunc(s.kept, func(a *cluster.Allocation) bool { return a.ID == id })
}

// keepsReplacement reports whether the replacement of an allocation that came back is kept. On a node that
// drains or is ineligible the original would have to leave.
func keepsReplacement(v View, g *cluster.TaskGroup, original *cluster.Allocation) bool {
	n := v.Node(original.NodeID)
	return g.Disconnect.KeepReplacement || n.Draining() || n == nil || n.SchedulingEligibility == cluster.NodeIneligible
}

// successorRuns reports whether the last of the allocation's successive replacements runs.
func (v jobView) successorRuns(a *cluster.Allocation) bool {
	next := cluster.LastSuccessor(a, v.view.Alloc)
	return next != nil && runs(v.view, next)
}

// runs reports whether the allocation runs on a node that the servers reach.
func runs(v View, a *cluster.Allocation) bool {
	return a.DesiredStatus == cluster.DesiredRun && a.ClientStatus == cluster.ClientRunning && v.Node(a.NodeID).Reachable()
}
