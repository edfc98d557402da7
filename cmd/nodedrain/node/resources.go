package node

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// device names one device of a node.
type device struct{ vendor, kind, name, id string }

// ownerTable lists the devices of a node with the allocations that have them.
func ownerTable(n *wire.Node, allocs []*wire.Allocation, verbose bool) *cli.Table {
	owners := map[device]string{}
	for _, a := range allocs {
		if a.AllocatedResources == nil || !holdsDevices(a) {
			continue
		}
		for _, t := range a.AllocatedResources.Tasks {
			if t == nil {
				continue
			}
			for _, d := range t.Devices {
				if d == nil {
					continue
				}
				for _, id := range d.DeviceIDs {
					owners[device{d.Vendor, d.Type, d.Name, id}] = cli.ShortID(a.ID, verbose)
				}
			}
		}
	}
	t := cli.NewTable("Device", "ID", "Healthy", "Allocation", "Description")
	if n.NodeResources == nil {
		return t
	}
	for _, g := range n.NodeResources.Devices {
		if g == nil {
			continue
		}
		for _, d := range g.Instances {
			if d == nil {
				continue
			}
			owner := owners[device{g.Vendor, g.Type, g.Name, d.ID}]
			t.Row(alloc.KindText(g.Vendor, g.Type, g.Name), d.ID, fmt.Sprint(d.Healthy), cmp.Or(owner, "-"), cmp.Or(d.HealthDescription, "-"))
		}
	}
	return t
}

// deviceProblemTable lists by device plugin why it has no devices, or which parts of its report the
// client ignores.
func deviceProblemTable(n *wire.Node) *cli.Table {
	problems := cluster.DeviceProblems(n.Attributes)
	t := cli.NewTable("Plugin", "Problem")
	for _, plugin := range slices.Sorted(maps.Keys(problems)) {
		t.Row(cmp.Or(plugin, "-"), problems[plugin])
	}
	return t
}

// holdsDevices reports whether the allocation has not ended, so that its devices are in use.
func holdsDevices(a *wire.Allocation) bool {
	switch cluster.ClientStatus(a.ClientStatus) {
	case cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost:
		return false
	}
	return true
}

// usage prints the resources of a node's machine that are in use. A node without statistics, or without a
// connection to the servers, has dashes.
func usage(c *cli.Call, node *wire.Node) {
	ctx, cancel := context.WithTimeout(c.Ctx, alloc.StatsTimeout)
	defer cancel()
	stats, err := c.API.NodeStats(ctx, node.ID)
	if err != nil || stats == nil {
		stats = &wire.HostStats{}
	}
	c.Section("Resources In Use", hostTable(stats))
	c.SectionIfAny("Devices In Use", deviceTable(stats.DeviceStats))
}

// deviceTable shows one value of each device, in the order of their names.
func deviceTable(groups []*wire.DeviceGroupStats) *cli.Table {
	values := make(map[string]*wire.StatValue)
	for _, g := range groups {
		if g == nil {
			continue
		}
		for id, s := range g.InstanceStats {
			if s != nil {
				values[g.Vendor+"/"+g.Type+"/"+g.Name+"/"+id] = s.Summary
			}
		}
	}
	t := cli.NewTable("Device", "Value", "Meaning")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		meaning := "-"
		if v := values[name]; v != nil {
			meaning = cmp.Or(v.Desc, "-")
		}
		t.Row(name, values[name].String(), meaning)
	}
	return t
}

// hostTable shows the use of a machine: its cores on average, its memory, and the disk with the folders of
// the allocations.
func hostTable(s *wire.HostStats) *cli.Table {
	cpu, memory, disk := "-", "-", "-"
	if len(s.CPU) > 0 {
		idle, known := 0.0, 0
		for _, core := range s.CPU {
			if core != nil {
				idle += core.Idle
				known++
			}
		}
		if known > 0 {
			cpu = fmt.Sprintf("%.0f%% of %s", 100-idle/float64(known), cli.Count(known, "core"))
		}
	}
	if m := s.Memory; m != nil && m.Total > 0 {
		memory = cli.BytesText(m.Used) + "/" + cli.BytesText(m.Total)
	}
	if d := s.AllocDirStats; d != nil && d.Size > 0 {
		disk = cli.BytesText(d.Used) + "/" + cli.BytesText(d.Size)
	}
	t := cli.NewTable("CPU", "Memory", "Disk")
	t.Row(cpu, memory, disk)
	return t
}
