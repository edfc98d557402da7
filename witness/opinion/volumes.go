package opinion

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Volumes are the volumes of a state and who has claimed them. The order does not matter.
type Volumes interface {
	// Volume returns the volume, or nil.
	Volume(cluster.VolumeKey) *cluster.Volume
	// ClaimsOnNode yields the claims of allocations on the node.
	ClaimsOnNode(cluster.NodeID) iter.Seq[*cluster.VolumeClaim]
}

// Excluded reports whether the drain leaves the allocation on its node by request: it is one of a
// system job, or a node plugin that serves one. onNode are the allocations of the node. A nil
// Volumes has no volumes.
func Excluded(a *cluster.Allocation, d *cluster.Drain, onNode iter.Seq[*cluster.Allocation], v Volumes) bool {
	if !d.Strategy.IgnoreSystemJobs {
		return false
	}
	switch StageOf(a) {
	case System:
		return true
	case Plugin:
		return v != nil && serves(a, d, onNode, v)
	}
	return false
}

// serves reports whether a system allocation that lives on the node of the drain has there a volume
// of the node plugin that the allocation runs.
func serves(a *cluster.Allocation, d *cluster.Drain, onNode iter.Seq[*cluster.Allocation], v Volumes) bool {
	runs := map[cluster.PluginID]bool{}
	if g := groupOf(a.Job, a.TaskGroup); g != nil {
		for _, t := range g.Tasks {
			if t != nil && t.CSIPlugin != nil && t.CSIPlugin.Type != "controller" {
				runs[t.CSIPlugin.ID] = true
			}
		}
	}
	if len(runs) == 0 {
		return false
	}
	system := map[cluster.AllocID]bool{}
	for o := range onNode {
		system[o.ID] = Live(o) && StageOf(o) == System
	}
	for c := range v.ClaimsOnNode(d.NodeID) {
		if !system[c.Alloc] || c.State != cluster.ClaimTaken && c.State != cluster.ClaimUnpublishing {
			continue
		}
		if volume := v.Volume(c.Volume); volume != nil && runs[volume.Plugin] {
			return true
		}
	}
	return false
}
