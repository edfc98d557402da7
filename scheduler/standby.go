package scheduler

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// sortStandby sorts a standby allocation. It has no slot of the group, and is replaced by a standby. If its original loses
// the slot with this plan, the standby has it.
func sortStandby(p *planner, g *cluster.TaskGroup, s *slots, a *cluster.Allocation) {
	original := cluster.Original(a, p.view.Alloc)
	if original != nil {
		if of, _ := p.stand(g, original); of != kept {
			original = nil
		}
	}
	if original == nil {
		p.sortSlot(g, s, a)
		return
	}
	if requested(p.jobView, original) {
		if moveExtra(p, g, a) && a.NextAllocation == "" {
			s.beside = append(s.beside, a)
		}
		return
	}
	if a.NextAllocation == "" { // also one that has ended: the stop removes its link with the original
		_, lose := p.stand(g, a)
		p.draft.plan.Stops = append(p.draft.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: cluster.DescOriginalStays, Lost: lose})
	}
}

// requested reports whether a drain requests a replacement beside the allocation.
func requested(v jobView, a *cluster.Allocation) bool {
	return cluster.SurgeRequested(a, v.view.Node(a.NodeID))
}

// requesting are the kept allocations that have no replacement, and for which a drain requests one.
func requesting(v jobView, kept []*cluster.Allocation) (all []*cluster.Allocation) {
	for _, a := range kept {
		if a.NextAllocation == "" && requested(v, a) {
			all = append(all, a)
		}
	}
	return all
}

// lastStandby returns the last of the standbys of an allocation, or nil.
func lastStandby(v jobView, a *cluster.Allocation) *cluster.Allocation {
	if a.DesiredTransition.Surge == "" {
		return nil
	}
	if next := cluster.LastSuccessor(a, v.view.Alloc); next != nil && next.Standby {
		return next
	}
	return nil
}

// standbyOf returns the standby of an allocation that runs or starts, or nil.
func standbyOf(v jobView, a *cluster.Allocation) *cluster.Allocation {
	if standby := lastStandby(v, a); standby != nil && !standby.Terminal() {
		return standby
	}
	return nil
}

// hasStandby reports whether the allocation has a standby, which may have ended.
func hasStandby(v jobView, a *cluster.Allocation) bool { return lastStandby(v, a) != nil }

// standsBy reports whether the placement of a plan stands by when it is applied: the original keeps its slot after the
// accepted stops, and a drain still requests the placement.
func standsBy(c *checker, a *cluster.Allocation) bool {
	previous := c.view.Alloc(a.PreviousAllocation)
	if !a.Standby || previous == nil {
		return false
	}
	original := previous
	if previous.Standby {
		original = cluster.Original(previous, c.view.Alloc)
	}
	return original != nil && !original.ClientTerminal() && !c.left[original.ID] && requested(c.jobView, original)
}

// standbyReason returns why a standby must not be stopped, or the empty string.
func standbyReason(c *checker, a *cluster.Allocation) string {
	if original := cluster.Original(a, c.view.Alloc); original != nil && requested(c.jobView, original) {
		return fmt.Sprintf("a drain requests it beside allocation %s", original.ID)
	}
	return ""
}
