package opinion_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// book is one volume of the plugin disks and its claims.
type book []*cluster.VolumeClaim

func (b book) Volume(k cluster.VolumeKey) *cluster.Volume {
	if k.ID == "data" {
		return &cluster.Volume{ID: "data", Plugin: "disks"}
	}
	return nil
}

func (b book) ClaimsOnNode(n cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return func(yield func(*cluster.VolumeClaim) bool) {
		for _, c := range b {
			if c.Node == n && !yield(c) {
				return
			}
		}
	}
}

// A drain that ignores system jobs leaves them, and the node plugins that have their volumes.
func TestExcluded(t *testing.T) {
	t.Parallel()
	type world struct {
		plugin, system *cluster.Allocation
		task           *cluster.Task
		drain          *cluster.Drain
		claim          *cluster.VolumeClaim
	}
	for name, c := range map[string]struct {
		edit func(w *world)
		want bool
	}{
		"a plugin that serves a system allocation": {func(*world) {}, true},
		"an unmount that fails":                    {func(w *world) { w.claim.State = cluster.ClaimUnpublishing }, true},
		"a volume that is off the node":            {func(w *world) { w.claim.State = cluster.ClaimNodeDetached }, false},
		"a volume that does not exist":             {func(w *world) { w.claim.Volume.ID = "gone" }, false},
		"a claim on another node":                  {func(w *world) { w.claim.Node = "n2" }, false},
		"an allocation that has ended":             {func(w *world) { w.system.ClientStatus = cluster.ClientLost }, false},
		"an allocation of a consumer":              {func(w *world) { w.system.Job.Type = cluster.JobSysBatch }, false},
		"a controller":                             {func(w *world) { w.task.CSIPlugin.Type = cluster.PluginController }, false},
		"another plugin":                           {func(w *world) { w.task.CSIPlugin.ID = "nfs" }, false},
		"a plugin without volumes":                 {func(w *world) { w.task.CSIPlugin = nil }, false},
		"another group of its job":                 {func(w *world) { w.plugin.TaskGroup = "other" }, false},
		"a drain of all jobs":                      {func(w *world) { w.drain.Strategy.IgnoreSystemJobs = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{drain: &cluster.Drain{NodeID: "n1"}, task: &cluster.Task{StoragePlugin: true, CSIPlugin: &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginNode}}}
			w.drain.Strategy.IgnoreSystemJobs = true
			alloc := func(id cluster.AllocID, tasks ...*cluster.Task) *cluster.Allocation {
				j := &cluster.Job{Type: cluster.JobSystem, TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: tasks}, {Name: "other"}}}
				return &cluster.Allocation{ID: id, Job: j, TaskGroup: "g", ClientStatus: cluster.ClientRunning}
			}
			w.plugin, w.system = alloc("p1", w.task, nil), alloc("s1")
			w.claim = &cluster.VolumeClaim{Volume: cluster.VolumeKey{ID: "data"}, Alloc: "s1", Node: "n1"}
			c.edit(w)
			onNode := slices.Values([]*cluster.Allocation{w.plugin, w.system})
			must.Eq(t, c.want, opinion.Excluded(w.plugin, w.drain, onNode, book{w.claim}))
			must.False(t, opinion.Excluded(w.plugin, w.drain, onNode, nil), must.Sprint("a state without volumes"))
			ignored := w.drain.Strategy.IgnoreSystemJobs && w.system.Job.Type == cluster.JobSystem
			must.Eq(t, ignored, opinion.Excluded(w.system, w.drain, onNode, book{w.claim}))
		})
	}
}
