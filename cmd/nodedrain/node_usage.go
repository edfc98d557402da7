package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// usage prints the resources of a node's machine that are in use. A node without statistics, or without a
// connection to the servers, gives dashes.
func (c *nodeStatusCommand) usage(asked *client.Client, node *wire.Node) {
	ctx, cancel := context.WithTimeout(c.ctx, statsTimeout)
	defer cancel()
	stats, err := asked.NodeStats(ctx, node.ID)
	if err != nil || stats == nil {
		stats = &wire.HostStats{}
	}
	fmt.Fprintln(c.out, "\nResources In Use")
	hostTable(stats).write(c.out)
	if devices := deviceTable(stats.DeviceStats); devices != nil {
		fmt.Fprintln(c.out, "\nDevices In Use")
		devices.write(c.out)
	}
}

// deviceTable shows one value of each device, in the order of their names, or is nil without any.
func deviceTable(groups []*wire.DeviceGroupStats) *table {
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
	t := newTable("Device", "Value", "Meaning")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		meaning := "-"
		if v := values[name]; v != nil {
			meaning = cmp.Or(v.Desc, "-")
		}
		t.row(name, values[name].String(), meaning)
	}
	return t
}

// hostTable shows the use of a machine: its cores on average, its memory, and the disk with the folders of
// the allocations.
func hostTable(s *wire.HostStats) *table {
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
			cpu = fmt.Sprintf("%.0f%% of %s", 100-idle/float64(known), counted(known, "core"))
		}
	}
	if m := s.Memory; m != nil && m.Total > 0 {
		memory = bytesText(m.Used) + "/" + bytesText(m.Total)
	}
	if d := s.AllocDirStats; d != nil && d.Size > 0 {
		disk = bytesText(d.Used) + "/" + bytesText(d.Size)
	}
	t := newTable("CPU", "Memory", "Disk")
	t.row(cpu, memory, disk)
	return t
}
