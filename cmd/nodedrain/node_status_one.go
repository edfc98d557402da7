package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// one shows one node.
func (c *nodeStatusCommand) one(asked *client.Client, f *nodeStatusFlags, prefix string) error {
	node, _, err := c.find(asked, prefix, "Error querying node info")
	switch {
	case err != nil:
		return err
	case f.raw():
		return printRaw(&f.outputFlags, c.out, node)
	}
	allocs, _, err := asked.NodeAllocations(c.ctx, node.ID, client.Query{})
	if err != nil {
		return saidf("Error querying node allocations: %v", err)
	}
	nodeFacts(node, f.verbose).write(c.out)
	if !f.short {
		if node.ReportsDrivers {
			fmt.Fprintln(c.out, "\nDrivers")
			driverTable(node).write(c.out)
		}
		if node.NodeResources != nil && len(node.NodeResources.Devices) > 0 {
			fmt.Fprintln(c.out, "\nDevices")
			ownerTable(node, allocs, f.verbose).write(c.out)
		}
		if problems := deviceProblemTable(node); problems != nil {
			fmt.Fprintln(c.out, "\nDevice Problems")
			problems.write(c.out)
		}
		if len(node.StoragePlugins) > 0 {
			fmt.Fprintln(c.out, "\nStorage Plugins")
			nodePluginTable(node, f.verbose).write(c.out)
		}
		if err := c.volumes(asked, node, allocs); err != nil {
			return err
		}
		fmt.Fprintln(c.out, "\nNode Events")
		eventTable(node, f.verbose).write(c.out)
		fmt.Fprintln(c.out, "\nAllocated Resources")
		resourceTable(node, allocs).write(c.out)
		c.usage(asked, node)
	}
	fmt.Fprintln(c.out, "\nAllocations")
	if len(allocs) == 0 {
		fmt.Fprintln(c.out, "No allocations placed")
		return nil
	}
	allocTable(allocs, f.verbose, time.Now()).write(c.out)
	return nil
}

// volumes lists the volumes that allocations on the node claim, in all namespaces.
func (c *nodeStatusCommand) volumes(asked *client.Client, node *wire.Node, allocs []*wire.Allocation) error {
	if !mayHaveVolumes(node, allocs) {
		return nil
	}
	volumes, _, err := asked.Volumes().OnNode(c.ctx, cluster.NodeID(node.ID))
	if err != nil {
		return saidf("Error querying volumes of the node: %v", err)
	}
	if len(volumes) > 0 {
		fmt.Fprintln(c.out, "\nVolumes")
		volumeStubTable(volumes).write(c.out)
	}
	return nil
}

func nodeFacts(n *wire.Node, verbose bool) *facts {
	var f facts
	f.add("ID", shortID(n.ID, verbose))
	f.add("Name", n.Name)
	f.add("Node Pool", n.NodePool)
	f.add("Class", n.NodeClass)
	f.add("DC", n.Datacenter)
	f.add("Drain", drainText(n.DrainStrategy))
	f.add("Eligibility", n.SchedulingEligibility)
	f.add("Status", n.Status)
	if n.DrainID != "" {
		f.add("Drain ID", n.DrainID)
	}
	if last := n.LastDrain; last != nil {
		f.add("Last Drain", lastDrainText(last))
	}
	if verbose {
		f.add("Address", n.HTTPAddr)
		for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
			f.add(name, n.Attributes[name])
		}
	}
	return &f
}

// drainText returns the drain of a node as a cell of a table.
func drainText(s *wire.DrainStrategy) string {
	if s == nil {
		return "false"
	}
	return "true; " + limitText(s)
}

// lastDrainText returns the status, the times and the metadata of the last drain.
func lastDrainText(d *wire.DrainMetadata) string {
	text := fmt.Sprintf("%s; started %s, updated %s", d.Status, clock(d.StartedAt), clock(d.UpdatedAt))
	if meta := pairsText(d.Meta); meta != "" {
		text += "; " + meta
	}
	return text
}

// eventTable lists a node's events, newest first.
func eventTable(n *wire.Node, verbose bool) *table {
	columns := []string{"Time", "Subsystem", "Message"}
	if verbose {
		columns = append(columns, "Details")
	}
	t := newTable(columns...)
	for _, e := range slices.Backward(n.Events) {
		cells := []string{clock(e.Timestamp), e.Subsystem, e.Message}
		if verbose {
			cells = append(cells, pairsText(e.Details))
		}
		t.row(cells...)
	}
	return t
}

// driverTable lists the drivers of a node by name.
func driverTable(n *wire.Node) *table {
	t := newTable("Driver", "Detected", "Healthy", "Description", "Changed")
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		if d := n.Drivers[name]; d != nil {
			t.row(name, fmt.Sprint(d.Detected), fmt.Sprint(d.Healthy), cmp.Or(d.HealthDescription, "-"), timeCell(d.UpdateTime))
		}
	}
	return t
}

// resourceTable shows how much of a node's resources its running allocations use.
func resourceTable(n *wire.Node, allocs []*wire.Allocation) *table {
	var cpu, memory, disk int64
	for _, a := range allocs {
		if a.ClientStatus == string(cluster.ClientRunning) && a.Resources != nil {
			cpu += number(a.Resources.CPU)
			memory += number(a.Resources.MemoryMB)
			disk += number(a.Resources.DiskMB)
		}
	}
	var has wire.NodeResources
	var reserved wire.ReservedResources
	if n.NodeResources != nil {
		has = *n.NodeResources
	}
	if n.ReservedResources != nil {
		reserved = *n.ReservedResources
	}
	t := newTable("CPU", "Memory", "Disk")
	t.row(fmt.Sprintf("%d/%d MHz", cpu, has.Cpu.CpuShares-reserved.Cpu.CpuShares),
		fmt.Sprintf("%d/%d MiB", memory, has.Memory.MemoryMB-reserved.Memory.MemoryMB),
		fmt.Sprintf("%d/%d MiB", disk, has.Disk.DiskMB-reserved.Disk.DiskMB))
	return t
}

// allocTable lists allocations, newest first.
func allocTable(allocs []*wire.Allocation, verbose bool, now time.Time) *table {
	allocs = slices.Clone(allocs)
	slices.SortStableFunc(allocs, func(a, b *wire.Allocation) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	columns := []string{"ID", "Job", "Task Group", "Version", "Desired", "Status", "Created", "Modified"}
	if verbose {
		columns = slices.Insert(columns, 1, "Eval ID", "Namespace")
	}
	t := newTable(columns...)
	for _, a := range allocs {
		cells := []string{
			shortID(a.ID, verbose), a.JobID, a.TaskGroup, jobVersion(a), a.DesiredStatus, a.ClientStatus,
			ago(a.CreateTime, now, verbose), ago(a.ModifyTime, now, verbose),
		}
		if verbose {
			cells = slices.Insert(cells, 1, a.EvalID, a.Namespace)
		}
		t.row(cells...)
	}
	return t
}
