package drainertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// VolumeStore is the store of a cluster with volumes, for [TestVolumes]. Its views implement
// [rules.VolumeView].
type VolumeStore interface {
	Store
	// Claim makes one commit. After it the allocation, which exists, has claimed one volume of each
	// of the storage plugins, and no other volume.
	Claim(index uint64, a cluster.AllocID, plugins []cluster.PluginID) error
}

// TestVolumes tests the contract of a store with volumes. Its views yield the storage plugins of
// claimed volumes, and never change. Its feeds name the node of an allocation that a drain leaves
// when the allocation's claims change. Its jobs keep the id and the type of their storage plugins.
// A store of a cluster without volumes needs neither this test nor the method.
func TestVolumes(newStore func() VolumeStore) error {
	s := newStore()
	if err := s.Commit(1, volumeRows()); err != nil {
		return fmt.Errorf("commit 1: %w", err)
	}
	if err := keepsPlugins(s.Snapshot()); err != nil {
		return err
	}
	f := newTestedFeed(s)
	type old struct {
		view    rules.View
		plugins []cluster.PluginID
	}
	olds := []old{{view: s.Snapshot()}}
	for i, plugins := range [][]cluster.PluginID{{"disks"}, {"disks", "files"}, {"files"}, nil} {
		index := uint64(i + 2)
		if err := s.Claim(index, "s1", plugins); err != nil {
			return fmt.Errorf("claim %d: %w", index, err)
		}
		if len(f.wake) == 0 {
			return fmt.Errorf("a feed has not woken its subscriber for claim %d", index)
		}
		<-f.wake
		if reported := f.feed.Take(); !reported.All {
			if missing := unreported("host", []cluster.NodeID{"n1"}, slices.Concat(reported.Hosts, reported.Nodes)); missing != nil {
				return fmt.Errorf("after claim %d: %w", index, missing)
			}
		}
		olds = append(olds, old{s.Snapshot(), plugins})
	}
	for i, o := range olds {
		if err := yieldsPlugins(o.view, o.plugins); err != nil {
			return fmt.Errorf("the view of index %d: %w", i+1, err)
		}
	}
	return nil
}

// volumeRows are a node whose drain leaves the system allocation s1, and a storage plugin on it.
func volumeRows() Rows {
	n := &cluster.Node{ID: "n1", Status: cluster.NodeReady, Drain: &cluster.Drain{ID: "d1", NodeID: "n1"}}
	n.Drain.Strategy.IgnoreSystemJobs = true
	rows := Rows{Nodes: []*cluster.Node{n}}
	for _, id := range []cluster.JobID{"backup", "disks"} {
		task := &cluster.Task{Name: "t"}
		if id == "disks" {
			task.StoragePlugin, task.CSIPlugin = true, &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith}
		}
		j := &cluster.Job{Namespace: "default", ID: id, Type: cluster.JobSystem, TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{task}}}}
		rows.Jobs = append(rows.Jobs, j)
		rows.Allocs = append(rows.Allocs, &cluster.Allocation{
			ID: cluster.AllocID(id[:1]) + "1", Namespace: "default", JobID: id, Job: j, TaskGroup: "g", NodeID: "n1",
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		})
	}
	rows.Allocs[0].ID = "s1"
	return rows
}

// keepsPlugins returns an error if the view has lost fields of a storage plugin.
func keepsPlugins(v rules.View) error {
	a := v.Alloc("d1")
	if a == nil || a.Job.Group("g") == nil {
		return errors.New("Alloc(d1): it has lost its job")
	}
	p := a.Job.Group("g").Tasks[0].CSIPlugin
	if p == nil || p.ID != "disks" || p.Type != cluster.PluginMonolith {
		return errors.New("Alloc(d1): its job has lost the id or the type of the storage plugin, Tasks[0].CSIPlugin")
	}
	return nil
}

// yieldsPlugins returns an error if VolumePlugins does not yield the claims of s1.
func yieldsPlugins(v rules.View, want []cluster.PluginID) error {
	volumes, has := v.(rules.VolumeView)
	if !has {
		return errors.New("it is no rules.VolumeView")
	}
	got := slices.Compact(slices.Sorted(volumes.VolumePlugins("s1")))
	if !slices.Equal(got, want) {
		return fmt.Errorf("VolumePlugins(s1): yields %v, want %v", got, want)
	}
	for _, id := range []cluster.AllocID{"d1", "none"} {
		for p := range volumes.VolumePlugins(id) {
			return fmt.Errorf("VolumePlugins(%s): yields %s, but it has claimed nothing", id, p)
		}
	}
	return nil
}
