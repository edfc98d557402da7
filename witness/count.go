package witness

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

func healthyButForMark(a *cluster.Allocation, s State) bool {
	return opinion.HealthyButForMark(a, s.Node(a.NodeID))
}

func healthy(a *cluster.Allocation, s State) bool { return opinion.Healthy(a, s.Node(a.NodeID)) }

// countHealthy counts the healthy allocations of each group of a job.
func countHealthy(s State, job cluster.JobKey) map[string]int {
	counts := make(map[string]int)
	for a := range s.AllocsByJob(job) {
		if healthy(a, s) {
			counts[a.TaskGroup]++
		}
	}
	return counts
}

// hasToLeave reports whether the drain must wait for the allocation at all.
func hasToLeave(a *cluster.Allocation, d *cluster.Drain, s State) bool {
	volumes, _ := s.(opinion.Volumes)
	return !opinion.Excluded(a, d, s.AllocsByNode(d.NodeID), volumes)
}

// waitOver reports whether, at this time, the node's drain need no longer wait for a
// live allocation on it.
func (w *Witness) waitOver(a *cluster.Allocation, node *cluster.Node, d *cluster.Drain, at time.Time) bool {
	return opinion.WaitOver(a, node, d, at, w.options.StopMargin)
}
