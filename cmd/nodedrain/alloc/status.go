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
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain alloc status".
func Status() *cli.Command {
	return cli.Status("List allocations, or show one", "[ALLOC]", `
  Without ALLOC, lists the allocations of the namespace that have not ended. With ALLOC,
  shows the allocation: its node, its health, the mark of a drain, its predecessor and
  replacement, the states and events of its tasks, their devices, its volumes, the volumes
  that keep it from ending, the moves of the data of its ephemeral disk, and its checks
  and the resources in use, if its node answers. ALLOC is the allocation's id or a prefix
  of it.
`, func(c *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.AllocationListStub, *wire.Allocation] {
		l := allocs(c, f.Verbose)
		l.Show = func(a *wire.Allocation) error { return show(c, a, f.Verbose) }
		return l
	})
}

// Help is the help of the parent command.
const Help = `
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
	t := cli.NewTable("ID", cli.If(verbose, "Name"), cli.If(verbose, "Namespace"), cli.If(verbose, "Node ID"), cli.If(verbose, "Eval ID"),
		"Job", "Group", "Node", "Desired", "Status", "Health", "Created", "Modified")
	for _, a := range allocs {
		t.Row(cli.ShortID(a.ID, verbose), a.Name, a.Namespace, a.NodeID, a.EvalID,
			a.JobID, a.TaskGroup, cmp.Or(a.NodeName, cli.ShortID(a.NodeID, false)), DesiredCell(a.DesiredStatus, a.Standby), a.ClientStatus,
			healthText(a.DeploymentStatus), cli.Ago(a.CreateTime, now, verbose), cli.Ago(a.ModifyTime, now, verbose))
	}
	return t
}

// DesiredCell is a desired status, and whether the allocation stands by for the one that it replaces.
func DesiredCell(desired string, standby bool) string {
	if standby {
		return desired + " (standby)"
	}
	return desired
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

// show prints one allocation.
func show(c *cli.Call, a *wire.Allocation, verbose bool) error {
	allocFacts(a, verbose).Write(c.Out)
	showChecks(c, a)
	tasks(&c.Base, a)
	c.SectionIfAny("Devices", AssignedTable(a))
	c.SectionIfAny("Ports", portTable(a))
	c.SectionIfAny("Volumes", volumeTable(a))
	c.SectionIfAny("Volumes Still On The Node", volume.HoldTable(a.VolumeHolds, verbose))
	c.SectionIfAny("Data Of The Ephemeral Disk", dataTable(a, replacement(c, a), verbose, time.Now()))
	volume.PrintControllerCalls(&c.Base, a.ControllerCalls, verbose)
	usage(c, a)
	return nil
}

// tasks prints the states of an allocation's tasks, and their events, newest first.
func tasks(c *cli.Base, a *wire.Allocation) {
	names := slices.Sorted(maps.Keys(a.TaskStates))
	if len(names) == 0 {
		return
	}
	t := cli.NewTable("Task", "Driver", "State", "Failed", "Exit Code", "Restarts", "Started", "Finished", "Waits For")
	for _, name := range names {
		s, waits := a.TaskStates[name], "-"
		if s.Waiting != nil {
			waits = taskWait(a, *s.Waiting, time.Now())
		}
		t.Row(name, driverOf(a, name), s.State, fmt.Sprint(s.Failed), exitCodeOf(s), fmt.Sprint(s.Restarts), cli.TimeCell(s.StartedAt), cli.TimeCell(s.FinishedAt), waits)
	}
	c.Section("Tasks", t)
	for _, name := range names {
		t := cli.NewTable("Time", "Type", "Message")
		for _, e := range slices.Backward(a.TaskStates[name].Events) {
			t.Row(cli.Ago(e.Time, time.Now(), true), e.Type, cmp.Or(e.DisplayMessage, e.Message, "-"))
		}
		c.SectionIfAny(fmt.Sprintf("Events of task %q", name), t)
	}
}

// taskWait returns what a task waits for. Volumes that are still on the node have a table of their own.
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
	f.AddAny("Surge", surgeText(a, verbose))
	f.Add("Created", cli.Ago(a.CreateTime, time.Now(), true))
	f.Add("Modified", cli.Ago(a.ModifyTime, time.Now(), true))
	f.AddAny("Replaces", cli.ShortID(a.PreviousAllocation, verbose))
	f.AddAny("Replaced By", cli.ShortID(a.NextAllocation, verbose))
	if r := a.Resources; r != nil {
		f.Add("Resources", fmt.Sprintf("%d MHz, %d MiB memory, %d MiB disk", cli.Number(r.CPU), cli.Number(r.MemoryMB), cli.Number(r.DiskMB)))
	}
	return &f
}

// surgeText is the part that an allocation has in a replacement before its stop, or empty: it stands by, or a drain has
// requested its replacement.
func surgeText(a *wire.Allocation, verbose bool) string {
	d := a.DesiredTransition
	switch {
	case a.Standby:
		return "standby: the allocation that it replaces is still in place"
	case d == nil || d.SurgeDrainID == "":
		return ""
	case d.DrainID != "":
		return fmt.Sprintf("replacement requested %s, before the mark", cli.Clock(d.SurgeAt))
	case a.NextAllocation == "":
		return fmt.Sprintf("replacement requested %s by drain %s; it has no place yet", cli.Clock(d.SurgeAt), cli.ShortID(d.SurgeDrainID, verbose))
	}
	return fmt.Sprintf("replacement requested %s by drain %s; it leaves when %s is healthy", cli.Clock(d.SurgeAt), cli.ShortID(d.SurgeDrainID, verbose), cli.ShortID(a.NextAllocation, verbose))
}

// Alive reports whether an allocation runs or starts.
func Alive(a *wire.Allocation) bool {
	return a.ClientStatus == string(cluster.ClientPending) || a.ClientStatus == string(cluster.ClientRunning)
}
