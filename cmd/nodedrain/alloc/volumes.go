package alloc

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// GroupOf returns the group of the allocation, or nil.
func GroupOf(a *wire.Allocation) *wire.TaskGroup {
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
func volumeTable(a *wire.Allocation) *cli.Table {
	g := GroupOf(a)
	if g == nil || len(g.Volumes) == 0 {
		return nil
	}
	t := cli.NewTable("Name", "Volume", "Access", "Mode", "Mounts")
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
		t.Row(name, volume, v.AccessMode, mode, cmp.Or(mountsOf(g, name), "-"))
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
