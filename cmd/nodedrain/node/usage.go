package node

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// usage prints the resources of a node's machine that are in use. A node without statistics, or without a
// connection to the servers, gives dashes.
func (c *statusCommand) usage(api *client.Client, node *wire.Node) {
	ctx, cancel := context.WithTimeout(c.Ctx, alloc.StatsTimeout)
	defer cancel()
	stats, err := api.NodeStats(ctx, node.ID)
	if err != nil || stats == nil {
		stats = &wire.HostStats{}
	}
	fmt.Fprintln(c.Out, "\nResources In Use")
	hostTable(stats).Write(c.Out)
	if devices := deviceTable(stats.DeviceStats); devices != nil {
		fmt.Fprintln(c.Out, "\nDevices In Use")
		devices.Write(c.Out)
	}
}

// deviceTable shows one value of each device, in the order of their names, or is nil without any.
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
	if len(values) == 0 {
		return nil
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
