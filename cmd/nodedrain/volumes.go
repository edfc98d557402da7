package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// groupOf returns the group of the allocation, or nil.
func groupOf(a *wire.Allocation) *wire.TaskGroup {
	if a.Job == nil {
		return nil
	}
	for _, g := range a.Job.TaskGroups {
		if g != nil && g.Name != nil && *g.Name == a.TaskGroup {
			return g
		}
	}
	return nil
}

// volumeTable lists the volumes of an allocation, or returns nil if its group has none.
func volumeTable(a *wire.Allocation) *table {
	g := groupOf(a)
	if g == nil || len(g.Volumes) == 0 {
		return nil
	}
	t := newTable("Name", "Volume", "Access", "Mode", "Mounts")
	for _, name := range slices.Sorted(maps.Keys(g.Volumes)) {
		v := g.Volumes[name]
		if v == nil {
			continue
		}
		volume, mode := v.Source, "write"
		if i := strings.LastIndexByte(a.Name, '['); v.PerAlloc && i >= 0 {
			volume += a.Name[i:]
		}
		if v.ReadOnly {
			mode = "read"
		}
		t.row(name, volume, v.AccessMode, mode, cmp.Or(mountsOf(g, name), "-"))
	}
	return t
}

// mountsOf says where the tasks of the group see the volume.
func mountsOf(g *wire.TaskGroup, volume string) string {
	var at []string
	for _, task := range g.Tasks {
		if task == nil {
			continue
		}
		for _, m := range task.VolumeMounts {
			if m != nil && m.Volume != nil && *m.Volume == volume && m.Destination != nil {
				at = append(at, task.Name+": "+*m.Destination)
			}
		}
	}
	return strings.Join(at, ", ")
}

// holdTable lists volumes that an allocation which must end, or has ended, or that a drain has left on
// a node, or returns nil if there is none.
func holdTable(holds *wire.VolumeHolds, verbose bool) *table {
	if holds == nil || len(holds.Volumes) == 0 {
		return nil
	}
	t := newTable("Volume", "Used By", "Since", "Waits For", "Path")
	for _, h := range holds.Volumes {
		t.row(jobName(h.Namespace, h.Volume), shortID(h.AllocID, verbose), timeCell(h.Since), cmp.Or(h.Reason, "-"), cmp.Or(h.Path, "-"))
	}
	if more := holds.More; more > 0 {
		t.row(fmt.Sprintf("and %d more", more), "-", "-", "-", "-")
	}
	return t
}

// nodePluginTable lists the storage plugins of a node.
func nodePluginTable(n *wire.Node, verbose bool) *table {
	t := newTable("Plugin", "Type", "Healthy", "Allocation", "Version", "Description")
	for _, p := range n.StoragePlugins {
		if p != nil {
			t.row(p.ID, p.Type, fmt.Sprint(p.Healthy), shortID(p.AllocID, verbose), cmp.Or(p.Version, "-"), cmp.Or(p.HealthDescription, "-"))
		}
	}
	return t
}

// mayHaveVolumes reports whether allocations on the node may have volumes: then it is worth asking.
func mayHaveVolumes(n *wire.Node, allocs []*wire.Allocation) bool {
	return len(n.StoragePlugins) > 0 || slices.ContainsFunc(allocs, func(a *wire.Allocation) bool {
		g := groupOf(a)
		return g != nil && len(g.Volumes) > 0
	})
}
