package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/volume"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// show prints one node.
func (f *statusFlags) show(c *cli.Call, idOrName string) error {
	node, _, err := c.Find(idOrName, "Error querying node info")
	switch {
	case err != nil:
		return err
	case c.Raw():
		return c.PrintRaw(node)
	}
	allocs, _, err := c.API.NodeAllocations(c.Ctx, node.ID, client.Query{})
	if err != nil {
		return cli.Errorf("Error querying node allocations: %v", err)
	}
	record := lastRecord(c, node)
	facts := nodeFacts(node, record, f.verbose)
	if record != nil && record.Unconfirmed > 0 {
		facts.Add("Unconfirmed", cli.Count(record.Unconfirmed, "allocation")+" of the last drain; see node explain")
	}
	if u := unlistedOn(node, allocs); u.Count > 0 {
		facts.Add("Unlisted", cli.Count(u.Count, "allocation")+" that the client may run and the servers do not list: "+unlistedText(u))
	}
	facts.Write(c.Out)
	if !f.short {
		if node.ReportsDrivers {
			c.Section("Drivers", driverTable(node))
		}
		c.SectionIfAny("Devices", ownerTable(node, allocs, f.verbose))
		c.SectionIfAny("Device Problems", deviceProblemTable(node))
		c.SectionIfAny("Storage Plugins", nodePluginTable(node, f.verbose))
		if err := claimedVolumes(c, node, allocs); err != nil {
			return err
		}
		c.Section("Node Events", eventTable(node, f.verbose))
		c.Section("Allocated Resources", resourceTable(node, allocs))
		usage(c, node)
	}
	if len(allocs) == 0 {
		fmt.Fprintln(c.Out, "\nAllocations\nNo allocations placed")
		return nil
	}
	c.Section("Allocations", allocTable(allocs, f.verbose, time.Now()))
	return nil
}

// unlistedOn returns the allocations that the node has reported as unlisted, without those that the servers list: a
// client that has just started, or that ignores the servers, reports all that it runs. A lost allocation whose end is
// confirmed is one, because the client contradicts the confirmation.
func unlistedOn(node *wire.Node, allocs []*wire.Allocation) (u wire.UnlistedAllocs) {
	if node.Unlisted == nil {
		return u
	}
	listed := map[string]bool{}
	for _, a := range allocs {
		listed[a.ID] = a.ClientStatus != string(cluster.ClientLost) || a.ConfirmedAt.IsZero()
	}
	u.Count = node.Unlisted.Count
	for _, id := range node.Unlisted.Allocs {
		if listed[id] {
			u.Count--
		} else {
			u.Allocs = append(u.Allocs, id)
		}
	}
	return u
}

// unlistedText names unlisted allocations in one line.
func unlistedText(u wire.UnlistedAllocs) string {
	text := strings.Join(u.Allocs, ", ")
	if more := u.Count - len(u.Allocs); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return cli.SingleLine(text)
}

// lastRecord returns the record of the node's last drain, or nil if it has not ended or the servers have none:
// the compatible API has only a status.
func lastRecord(c *cli.Call, node *wire.Node) *wire.Drain {
	if node.LastDrain == nil || node.DrainStrategy != nil {
		return nil
	}
	report, _, err := c.API.NodeDrain(c.Ctx, node.ID, client.Query{})
	if err != nil || report.State != wire.StateEnded {
		return nil
	}
	return report.Drain
}

// claimedVolumes lists the volumes that allocations on the node claim, in all namespaces.
func claimedVolumes(c *cli.Call, node *wire.Node, allocs []*wire.Allocation) error {
	if !mayHaveVolumes(node, allocs) {
		return nil
	}
	volumes, _, err := c.API.Volumes().OnNode(c.Ctx, cluster.NodeID(node.ID))
	if err != nil {
		return cli.Errorf("Error querying volumes of the node: %v", err)
	}
	c.SectionIfAny("Volumes", volume.StubTable(volumes))
	return nil
}

// mayHaveVolumes reports whether allocations on the node may have volumes.
func mayHaveVolumes(n *wire.Node, allocs []*wire.Allocation) bool {
	return len(n.StoragePlugins) > 0 || slices.ContainsFunc(allocs, func(a *wire.Allocation) bool {
		g := alloc.GroupOf(a)
		return g != nil && len(g.Volumes) > 0
	})
}

// nodePluginTable lists the storage plugins of a node.
func nodePluginTable(n *wire.Node, verbose bool) *cli.Table {
	t := cli.NewTable("Plugin", "Type", "Healthy", "Allocation", "Version", "Description")
	for _, p := range n.StoragePlugins {
		if p != nil {
			t.Row(p.ID, p.Type, fmt.Sprint(p.Healthy), cli.ShortID(p.AllocID, verbose), cmp.Or(p.Version, "-"), cmp.Or(p.HealthDescription, "-"))
		}
	}
	return t
}

func nodeFacts(n *wire.Node, record *wire.Drain, verbose bool) *cli.Facts {
	var f cli.Facts
	f.Add("ID", cli.ShortID(n.ID, verbose))
	f.Add("Name", n.Name)
	f.Add("Node Pool", n.NodePool)
	f.Add("Class", n.NodeClass)
	f.Add("DC", n.Datacenter)
	f.Add("Drain", drainText(n.DrainStrategy))
	f.Add("Eligibility", n.SchedulingEligibility)
	f.Add("Status", n.Status)
	f.AddAny("Drain ID", n.DrainID)
	if last := n.LastDrain; last != nil {
		f.Add("Last Drain", lastDrainText(last, record))
	}
	if verbose {
		f.Add("Address", n.HTTPAddr)
		for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
			f.Add(name, n.Attributes[name])
		}
	}
	return &f
}

// drainText returns the drain of a node as a cell of a table.
func drainText(s *wire.DrainStrategy) string {
	if s == nil {
		return "false"
	}
	return "true; " + cli.LimitText(s)
}

// lastDrainText returns the outcome, the times and the metadata of the last drain. Without a record it has the
// status of the compatible API, which is "complete" for several outcomes. A cancelled drain has its word.
func lastDrainText(d *wire.DrainMetadata, record *wire.Drain) string {
	status := d.Status
	if record != nil {
		if outcome := drain.OutcomeCell(record); outcome != string(cluster.OutcomeCancelled) {
			status = outcome
		}
	}
	text := fmt.Sprintf("%s; started %s, updated %s", status, cli.Clock(d.StartedAt), cli.Clock(d.UpdatedAt))
	if meta := cli.PairsText(d.Meta); meta != "" {
		text += "; " + meta
	}
	return text
}

// eventTable lists a node's events, newest first.
func eventTable(n *wire.Node, verbose bool) *cli.Table {
	t := cli.NewTable("Time", "Subsystem", "Message", cli.If(verbose, "Details"))
	for _, e := range slices.Backward(n.Events) {
		t.Row(cli.Clock(e.Timestamp), e.Subsystem, e.Message, cli.PairsText(e.Details))
	}
	return t
}

// driverTable lists the drivers of a node by name.
func driverTable(n *wire.Node) *cli.Table {
	t := cli.NewTable("Driver", "Detected", "Healthy", "Description", "Changed")
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		if d := n.Drivers[name]; d != nil {
			t.Row(name, fmt.Sprint(d.Detected), fmt.Sprint(d.Healthy), cmp.Or(d.HealthDescription, "-"), cli.TimeCell(d.UpdateTime))
		}
	}
	return t
}

// resourceTable shows how much of a node's resources its running allocations use.
func resourceTable(n *wire.Node, allocs []*wire.Allocation) *cli.Table {
	var cpu, memory, disk int64
	for _, a := range allocs {
		if a.ClientStatus == string(cluster.ClientRunning) && a.Resources != nil {
			cpu += cli.Number(a.Resources.CPU)
			memory += cli.Number(a.Resources.MemoryMB)
			disk += cli.Number(a.Resources.DiskMB)
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
	t := cli.NewTable("CPU", "Memory", "Disk")
	t.Row(fmt.Sprintf("%d/%d MHz", cpu, has.Cpu.CpuShares-reserved.Cpu.CpuShares),
		fmt.Sprintf("%d/%d MiB", memory, has.Memory.MemoryMB-reserved.Memory.MemoryMB),
		fmt.Sprintf("%d/%d MiB", disk, has.Disk.DiskMB-reserved.Disk.DiskMB))
	return t
}

// allocTable lists allocations, newest first.
func allocTable(allocs []*wire.Allocation, verbose bool, now time.Time) *cli.Table {
	allocs = slices.Clone(allocs)
	slices.SortStableFunc(allocs, func(a, b *wire.Allocation) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	t := cli.NewTable("ID", cli.If(verbose, "Eval ID"), cli.If(verbose, "Namespace"), "Job", "Task Group", "Version", "Desired", "Status", "Created", "Modified")
	for _, a := range allocs {
		t.Row(cli.ShortID(a.ID, verbose), a.EvalID, a.Namespace, a.JobID, a.TaskGroup, cli.JobVersion(a), alloc.DesiredCell(a.DesiredStatus, a.Standby), a.ClientStatus,
			cli.Ago(a.CreateTime, now, verbose), cli.Ago(a.ModifyTime, now, verbose))
	}
	return t
}
