package statestore

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// DrainView is a state as the drainer reads it.
type DrainView struct{ lookups }

var (
	_ rules.View       = DrainView{}
	_ rules.VolumeView = DrainView{}
	_ rules.PauseView  = DrainView{}
	_ rules.SurgeView  = DrainView{}
)

// DrainingNodes yields the nodes that drain, by id.
func (v DrainView) DrainingNodes() iter.Seq[*cluster.Node] {
	return scan[cluster.Node](v.tables, TableNodes, indexLists, key{listDraining})
}

// DrainPause returns the pause of all drains, or nil.
func (v DrainView) DrainPause() *cluster.DrainPause {
	if row := first[pauseRow](v.tables, tablePause, indexID, pauseID(nil)); row != nil {
		return &row.DrainPause
	}
	return nil
}

// PlacesBeside reports whether the cluster version has replacements beside the allocations that they replace.
func (v DrainView) PlacesBeside() bool { return versionIn(v.tables) >= cluster.VersionOfSurge }

// NodeAllocs yields the node's allocations of the stage that are not client-terminal, by id:
// those that are leaving, or those that are not.
func (v DrainView) NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](v.tables, TableAllocs, indexNode, liveOnNode(n, s, leaving))
}

// Unconfirmed yields the node's allocations that are [cluster.Allocation.Unconfirmed], by id.
func (v DrainView) Unconfirmed(n cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](v.tables, TableAllocs, indexNode, unconfirmedOnNode(n))
}

// KeptData yields the node's allocations that [cluster.KeepsData], by id.
func (v DrainView) KeptData(n cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](v.tables, TableAllocs, indexNode, keptDataOnNode(n))
}

// Consumers counts the node's allocations of [cluster.StageConsumers] that are
// not client-terminal.
func (v DrainView) Consumers(id cluster.NodeID) int { return usageOf(v.tables, id).Consumers }

// GroupAllocs yields the group's allocations by id: all that are not client-terminal, and
// the client-terminal canaries that a drain marked and that have no replacement yet.
func (v DrainView) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](v.tables, TableAllocs, indexGroup, inGroup(g))
}

// ChangingAllocs yields the allocations of GroupAllocs that are on a draining node or not
// [cluster.Allocation.Stable]. They are ordered by [cluster.Allocation.Progress], then by
// id. Each is [cluster.Allocation.Bare]: a write that changes only the dropped fields costs
// nothing here.
func (v DrainView) ChangingAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](v.tables, tableChanging, indexID, groupKey(g))
}

// Healthy counts the group's healthy allocations on all nodes: see
// [cluster.Allocation.Healthy].
func (v DrainView) Healthy(g cluster.GroupKey) int {
	if h := healthOf(v.tables, g); h != nil {
		return h.Healthy
	}
	return 0
}

// DrainAllocs yields the allocations that the drain has marked, by id, with any status. It leaves
// out withdrawn marks.
func (v DrainView) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for m := range scan[markRow](v.tables, tableMarks, indexID, newKey(d)) {
			if !yield(v.Alloc(m.Alloc)) {
				return
			}
		}
	}
}

// OpenEvals yields the job's evaluations that are pending or blocked, by
// creation index, then id.
func (v DrainView) OpenEvals(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](v.tables, TableEvals, indexLists, evalsOfJob(k).bool(false))
}

// VolumePlugins yields the storage plugins of the volumes that the allocation has claimed and that
// may be on its node, for [rules.VolumeView].
func (v DrainView) VolumePlugins(a cluster.AllocID) iter.Seq[cluster.PluginID] {
	work := WorkView{lists(v)}
	return func(yield func(cluster.PluginID) bool) {
		for c := range work.ClaimsOfAlloc(a) {
			if !c.State.OnNode() {
				continue
			}
			if volume := work.Volume(c.Volume); volume != nil && !yield(volume.Plugin) {
				return
			}
		}
	}
}
