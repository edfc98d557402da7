package alloc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/volume"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain alloc status".
func Status() *cli.Command {
	return cli.Status("List allocations, or show one", "alloc status [options] [ALLOC]", `  Without ALLOC, lists the allocations of the namespace that have not ended. With ALLOC,
  shows the allocation: its node, its health, the mark of a drain, its predecessor and
  replacement, the states and events of its tasks, their devices, its volumes, the volumes
  that keep it from ending, and the resources in use, if its node answers. ALLOC is the
  allocation's id or a prefix of it.`, "allocs", func(call *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.AllocationListStub] {
		c, api := &statusCommand{call}, call.API
		l := allocs(&c.Base, api, f.Verbose)
		l.One = func(a *wire.AllocationListStub) error { return c.one(api, f, a.ID) }
		return l
	})
}

type statusCommand struct{ *cli.Call }

// Help is the help of the parent command.
const Help = `Usage: nodedrain alloc <command> [options]

  Shows allocations, their files and the output of their tasks, and runs commands in
  tasks, sends them signals, and restarts and stops them. The node of the allocation
  answers most of these commands, through any server.`

// EndedAlloc reports whether an allocation has ended.
func EndedAlloc(a *wire.AllocationListStub) bool {
	return a.ClientStatus != string(cluster.ClientPending) && a.ClientStatus != string(cluster.ClientRunning) &&
		a.ClientStatus != string(cluster.ClientUnknown)
}

// StubTable lists allocations with their nodes, newest first.
func StubTable(allocs []*wire.AllocationListStub, verbose bool, now time.Time) *cli.Table {
	allocs = slices.Clone(allocs)
	slices.SortStableFunc(allocs, func(a, b *wire.AllocationListStub) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	columns := []string{"ID", "Job", "Group", "Node", "Desired", "Status", "Health", "Created", "Modified"}
	if verbose {
		columns = slices.Insert(columns, 1, "Name", "Namespace", "Node ID", "Eval ID")
	}
	t := cli.NewTable(columns...)
	for _, a := range allocs {
		cells := []string{
			cli.ShortID(a.ID, verbose), a.JobID, a.TaskGroup, cmp.Or(a.NodeName, cli.ShortID(a.NodeID, false)), a.DesiredStatus, a.ClientStatus,
			healthText(a.DeploymentStatus), cli.Ago(a.CreateTime, now, verbose), cli.Ago(a.ModifyTime, now, verbose),
		}
		if verbose {
			cells = slices.Insert(cells, 1, a.Name, a.Namespace, a.NodeID, a.EvalID)
		}
		t.Row(cells...)
	}
	return t
}

// healthText returns the verdict on an allocation's health.
func healthText(s *wire.DeploymentStatus) string {
	switch {
	case s == nil || s.Healthy == nil:
		return "-"
	case *s.Healthy:
		return "healthy"
	}
	return "unhealthy"
}

// one shows one allocation.
func (c *statusCommand) one(api *client.Client, f *cli.StatusFlags, id string) error {
	a, _, err := api.Allocation(c.Ctx, id, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying allocation: %v", err)
	case c.Raw():
		return c.PrintRaw(a)
	}
	allocFacts(a, f.Verbose).Write(c.Out)
	c.tasks(a)
	if t := AssignedTable(a); t != nil {
		fmt.Fprintln(c.Out, "\nDevices")
		t.Write(c.Out)
	}
	if t := volumeTable(a); t != nil {
		fmt.Fprintln(c.Out, "\nVolumes")
		t.Write(c.Out)
	}
	if t := volume.HoldTable(a.VolumeHolds, f.Verbose); t != nil {
		fmt.Fprintln(c.Out, "\nVolumes Still On The Node")
		t.Write(c.Out)
	}
	volume.PrintControllerCalls(c.Out, a.ControllerCalls, f.Verbose)
	c.usage(api, a)
	return nil
}

// tasks prints the states of an allocation's tasks, and their events, newest first.
func (c *statusCommand) tasks(a *wire.Allocation) {
	names := slices.Sorted(maps.Keys(a.TaskStates))
	if len(names) == 0 {
		return
	}
	fmt.Fprintln(c.Out, "\nTasks")
	t := cli.NewTable("Task", "Driver", "State", "Failed", "Exit Code", "Restarts", "Started", "Finished", "Waits For")
	for _, name := range names {
		s, waits := a.TaskStates[name], "-"
		if s.Waiting != nil {
			waits = taskWait(a, *s.Waiting, time.Now())
		}
		t.Row(name, driverOf(a, name), s.State, fmt.Sprint(s.Failed), exitCodeOf(s), fmt.Sprint(s.Restarts), cli.TimeCell(s.StartedAt), cli.TimeCell(s.FinishedAt), waits)
	}
	t.Write(c.Out)
	for _, name := range names {
		events := a.TaskStates[name].Events
		if len(events) == 0 {
			continue
		}
		fmt.Fprintf(c.Out, "\nEvents of task %q\n", name)
		t := cli.NewTable("Time", "Type", "Message")
		for _, e := range slices.Backward(events) {
			t.Row(cli.Ago(e.Time, time.Now(), true), e.Type, cmp.Or(e.DisplayMessage, e.Message, "-"))
		}
		t.Write(c.Out)
	}
}

// taskWait says what a task waits for. Volumes that are still on the node have a table of their own.
func taskWait(a *wire.Allocation, w wire.TaskWait, now time.Time) string {
	if w.For == string(cluster.WaitVolume) && a.VolumeHolds != nil && len(a.VolumeHolds.Volumes) > 0 {
		w.Detail = ""
	}
	return cli.WaitText(&w, now)
}

func allocFacts(a *wire.Allocation, verbose bool) *cli.Facts {
	var f cli.Facts
	f.Add("ID", a.ID)
	f.Add("Name", a.Name)
	f.Add("Job", cli.JobName(a.Namespace, a.JobID))
	f.Add("Group", a.TaskGroup)
	f.Add("Job Version", cli.JobVersion(a))
	f.Add("Node", fmt.Sprintf("%s (%s)", a.NodeName, cli.ShortID(a.NodeID, verbose)))
	f.Add("Evaluation", cli.ShortID(a.EvalID, verbose))
	f.Add("Desired", cli.Joined(a.DesiredStatus, a.DesiredDescription))
	f.Add("Status", cli.Joined(a.ClientStatus, a.ClientDescription))
	f.Add("Health", healthText(a.DeploymentStatus))
	if d := a.DesiredTransition; d != nil && d.DrainID != "" {
		f.Add("Marked", fmt.Sprintf("%s by drain %s (%s)", cli.Clock(d.MarkedAt), cli.ShortID(d.DrainID, verbose), d.MarkClass))
	}
	f.Add("Created", cli.Ago(a.CreateTime, time.Now(), true))
	f.Add("Modified", cli.Ago(a.ModifyTime, time.Now(), true))
	if a.PreviousAllocation != "" {
		f.Add("Replaces", cli.ShortID(a.PreviousAllocation, verbose))
	}
	if a.NextAllocation != "" {
		f.Add("Replaced By", cli.ShortID(a.NextAllocation, verbose))
	}
	if r := a.Resources; r != nil {
		f.Add("Resources", fmt.Sprintf("%d MHz, %d MiB memory, %d MiB disk", cli.Number(r.CPU), cli.Number(r.MemoryMB), cli.Number(r.DiskMB)))
	}
	return &f
}

// Alive reports whether an allocation runs or starts.
func Alive(a *wire.Allocation) bool {
	return a.ClientStatus == string(cluster.ClientPending) || a.ClientStatus == string(cluster.ClientRunning)
}
