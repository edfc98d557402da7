package alloc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// StatsTimeout bounds the wait for statistics of a node. A status is complete without them.
const StatsTimeout = 5 * time.Second

// usage prints the resources that the tasks of an allocation use. A node without statistics, or without a
// connection to the servers, gives dashes.
func (c *statusCommand) usage(api *client.Client, a *wire.Allocation) {
	if !Alive(a) || a.AllocatedResources == nil || len(a.AllocatedResources.Tasks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.Ctx, StatsTimeout)
	defer cancel()
	stats, err := api.Alloc(a.ID).Stats(ctx)
	if err != nil || stats == nil {
		stats = &wire.AllocStats{}
	}
	fmt.Fprintln(c.Out, "\nResources In Use")
	usageTable(a, stats).Write(c.Out)
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
		t.Row(name, fmt.Sprintf("%s/%d MHz", cpu, has.Cpu.CpuShares), fmt.Sprintf("%s/%d MiB", memory, has.Memory.MemoryMB))
	}
	return t
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

// exitCodeOf returns the exit code of the last end of a task's process, or a dash. The client says it in the
// message of the event, other clients in its details.
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
