package alloc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// KindText returns the name of a kind of devices.
func KindText(vendor, kind, name string) string {
	return cluster.DeviceKind{Vendor: vendor, Type: kind, Name: name}.String()
}

// AssignedTable lists the devices of an allocation by task, which may be none.
func AssignedTable(a *wire.Allocation) *cli.Table {
	t := cli.NewTable("Task", "Device", "IDs")
	if a.AllocatedResources == nil {
		return t
	}
	for _, name := range taskNames(a) {
		has := a.AllocatedResources.Tasks[name]
		if has == nil {
			continue
		}
		for _, d := range has.Devices {
			if d != nil {
				t.Row(name, KindText(d.Vendor, d.Type, d.Name), strings.Join(d.DeviceIDs, ", "))
			}
		}
	}
	return t
}

// portTable lists the ports of an allocation, which may be none. A port of the group has no task.
func portTable(a *wire.Allocation) *cli.Table {
	t := cli.NewTable("Label", "Task", "Address", "In the Task")
	row := func(label, task, ip string, number, to int) {
		inside := "-"
		if to != 0 {
			inside = strconv.Itoa(to)
		}
		t.Row(label, task, net.JoinHostPort(ip, strconv.Itoa(number)), inside)
	}
	if a.AllocatedResources == nil {
		return t
	}
	for _, p := range a.AllocatedResources.Shared.Ports {
		row(p.Label, "-", p.HostIP, p.Value, p.To)
	}
	for _, name := range taskNames(a) {
		has := a.AllocatedResources.Tasks[name]
		if has == nil {
			continue
		}
		for _, n := range has.Networks {
			if n == nil {
				continue
			}
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				row(p.Label, name, n.IP, p.Value, p.To)
			}
		}
	}
	return t
}

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

// volumeTable lists the volumes of an allocation, which may be none.
func volumeTable(a *wire.Allocation) *cli.Table {
	t := cli.NewTable("Name", "Volume", "Access", "Mode", "Mounts")
	g := GroupOf(a)
	if g == nil {
		return t
	}
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

// mountsOf returns where the tasks of the group have the volume.
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

// StatsTimeout bounds the wait for statistics of a node. A status is complete without them.
const StatsTimeout = 5 * time.Second

// usage prints the resources that the tasks of an allocation use. A node without statistics, or without a
// connection to the servers, has dashes.
func usage(c *cli.Call, a *wire.Allocation) {
	if !Alive(a) || a.AllocatedResources == nil || len(a.AllocatedResources.Tasks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.Ctx, StatsTimeout)
	defer cancel()
	stats, err := c.API.Alloc(a.ID).Stats(ctx)
	if err != nil || stats == nil {
		stats = &wire.AllocStats{}
	}
	c.Section("Resources In Use", usageTable(a, stats))
}

// usageTable shows for each task what it uses of what it has.
func usageTable(a *wire.Allocation, stats *wire.AllocStats) *cli.Table {
	t := cli.NewTable("Task", "CPU", "Memory")
	for _, name := range taskNames(a) {
		has := a.AllocatedResources.Tasks[name]
		if has == nil {
			continue
		}
		cpu, memory := "-", "-"
		if s := stats.Tasks[name]; s != nil && s.ResourceUsage != nil {
			if u := s.ResourceUsage.CpuStats; u != nil {
				cpu = fmt.Sprintf("%.0f", u.TotalTicks)
			}
			if u := s.ResourceUsage.MemoryStats; u != nil {
				memory = cli.BytesText(cmp.Or(u.Usage, u.RSS))
			}
		}
		cpu = fmt.Sprintf("%s/%d MHz", cpu, has.Cpu.CpuShares)
		if own := has.Cpu.ReservedCores; len(own) > 0 {
			cpu += fmt.Sprintf(", cores %s", coreList(own))
		}
		t.Row(name, cpu, fmt.Sprintf("%s/%d MiB", memory, has.Memory.MemoryMB))
	}
	return t
}

// coreList returns a list such as "0-3,8".
func coreList(numbers []uint16) string {
	cores := make(cluster.Cores, len(numbers))
	for i, core := range numbers {
		cores[i] = int(core)
	}
	return cores.String()
}

// driverOf returns the driver of a task, or a dash.
func driverOf(a *wire.Allocation, task string) string {
	if g := GroupOf(a); g != nil {
		for _, t := range g.Tasks {
			if t != nil && t.Name == task {
				return cmp.Or(t.Driver, "-")
			}
		}
	}
	return "-"
}

// exitCodeOf returns the exit code of the last end of a task's process, or a dash. The client reports it in
// the message of the event, other clients in its details.
func exitCodeOf(s *wire.TaskState) string {
	for _, e := range slices.Backward(s.Events) {
		if e.Type != "Terminated" {
			continue
		}
		if code := e.Details["exit_code"]; code != "" {
			return code
		}
		if text, is := strings.CutPrefix(cmp.Or(e.DisplayMessage, e.Message), "Exit Code: "); is {
			code, _, _ := strings.Cut(text, ",")
			return code
		}
		return "-"
	}
	return "-"
}
