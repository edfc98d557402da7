package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// allocStatusCommand is "nodedrain alloc status".
type allocStatusCommand struct{ operatorCommand }

const allocHelp = `Usage: nodedrain alloc <command> [options]

  Shows allocations, their files and the output of their tasks, and runs commands in
  tasks, sends them signals, and restarts and stops them. The node of the allocation
  answers most of these commands, through any server.`

func (c *allocStatusCommand) Synopsis() string { return "List allocations, or show one" }

func (c *allocStatusCommand) Help() string {
	return statusHelp("alloc status [options] [ALLOC]", `  Without ALLOC, lists the allocations of the namespace that have not ended. With ALLOC,
  shows the allocation: its node, its health, the mark of a drain, its predecessor and
  replacement, the states and events of its tasks, their devices, its volumes, the volumes
  that keep it from ending, and the resources in use, if its node answers. ALLOC is the
  allocation's id or a prefix of it.`)
}

func (c *allocStatusCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *allocStatusCommand) run(args []string) error {
	return showStatus(&c.operatorCommand, "alloc status", args, func(asked *client.Client, f *statusFlags) *lister[*wire.AllocationListStub] {
		l := allocs(&c.operatorCommand, asked, f.verbose)
		l.one = func(a *wire.AllocationListStub) error { return c.one(asked, f, a.ID) }
		return l
	})
}

// endedAlloc reports whether an allocation has ended.
func endedAlloc(a *wire.AllocationListStub) bool {
	return a.ClientStatus != string(cluster.ClientPending) && a.ClientStatus != string(cluster.ClientRunning) &&
		a.ClientStatus != string(cluster.ClientUnknown)
}

// stubTable lists allocations with their nodes, newest first.
func stubTable(allocs []*wire.AllocationListStub, verbose bool, now time.Time) *table {
	allocs = slices.Clone(allocs)
	slices.SortStableFunc(allocs, func(a, b *wire.AllocationListStub) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	columns := []string{"ID", "Job", "Group", "Node", "Desired", "Status", "Health", "Created", "Modified"}
	if verbose {
		columns = slices.Insert(columns, 1, "Name", "Namespace", "Node ID", "Eval ID")
	}
	t := newTable(columns...)
	for _, a := range allocs {
		cells := []string{
			shortID(a.ID, verbose), a.JobID, a.TaskGroup, cmp.Or(a.NodeName, shortID(a.NodeID, false)), a.DesiredStatus, a.ClientStatus,
			healthText(a.DeploymentStatus), ago(a.CreateTime, now, verbose), ago(a.ModifyTime, now, verbose),
		}
		if verbose {
			cells = slices.Insert(cells, 1, a.Name, a.Namespace, a.NodeID, a.EvalID)
		}
		t.row(cells...)
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
func (c *allocStatusCommand) one(asked *client.Client, f *statusFlags, id string) error {
	a, _, err := asked.Allocation(c.ctx, id, client.Query{})
	switch {
	case err != nil:
		return saidf("Error querying allocation: %v", err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, a)
	}
	allocFacts(a, f.verbose).write(c.out)
	c.tasks(a)
	if t := assignedTable(a); t != nil {
		fmt.Fprintln(c.out, "\nDevices")
		t.write(c.out)
	}
	if t := volumeTable(a); t != nil {
		fmt.Fprintln(c.out, "\nVolumes")
		t.write(c.out)
	}
	if t := holdTable(a.VolumeHolds, f.verbose); t != nil {
		fmt.Fprintln(c.out, "\nVolumes Still On The Node")
		t.write(c.out)
	}
	printControllerCalls(c.out, a.ControllerCalls, f.verbose)
	c.usage(asked, a)
	return nil
}

// tasks prints the states of an allocation's tasks, and their events, newest first.
func (c *allocStatusCommand) tasks(a *wire.Allocation) {
	names := slices.Sorted(maps.Keys(a.TaskStates))
	if len(names) == 0 {
		return
	}
	fmt.Fprintln(c.out, "\nTasks")
	t := newTable("Task", "Driver", "State", "Failed", "Exit Code", "Restarts", "Started", "Finished", "Waits For")
	for _, name := range names {
		s, waits := a.TaskStates[name], "-"
		if s.Waiting != nil {
			waits = taskWait(a, *s.Waiting, time.Now())
		}
		t.row(name, driverOf(a, name), s.State, fmt.Sprint(s.Failed), exitCodeOf(s), fmt.Sprint(s.Restarts), timeCell(s.StartedAt), timeCell(s.FinishedAt), waits)
	}
	t.write(c.out)
	for _, name := range names {
		events := a.TaskStates[name].Events
		if len(events) == 0 {
			continue
		}
		fmt.Fprintf(c.out, "\nEvents of task %q\n", name)
		t := newTable("Time", "Type", "Message")
		for _, e := range slices.Backward(events) {
			t.row(ago(e.Time, time.Now(), true), e.Type, cmp.Or(e.DisplayMessage, e.Message, "-"))
		}
		t.write(c.out)
	}
}

// taskWait says what a task waits for. Volumes that are still on the node have a table of their own.
func taskWait(a *wire.Allocation, w wire.TaskWait, now time.Time) string {
	if w.For == string(cluster.WaitVolume) && a.VolumeHolds != nil && len(a.VolumeHolds.Volumes) > 0 {
		w.Detail = ""
	}
	return waitText(&w, now)
}

func allocFacts(a *wire.Allocation, verbose bool) *facts {
	var f facts
	f.add("ID", a.ID)
	f.add("Name", a.Name)
	f.add("Job", jobName(a.Namespace, a.JobID))
	f.add("Group", a.TaskGroup)
	f.add("Job Version", jobVersion(a))
	f.add("Node", fmt.Sprintf("%s (%s)", a.NodeName, shortID(a.NodeID, verbose)))
	f.add("Evaluation", shortID(a.EvalID, verbose))
	f.add("Desired", joined(a.DesiredStatus, a.DesiredDescription))
	f.add("Status", joined(a.ClientStatus, a.ClientDescription))
	f.add("Health", healthText(a.DeploymentStatus))
	if d := a.DesiredTransition; d != nil && d.DrainID != "" {
		f.add("Marked", fmt.Sprintf("%s by drain %s (%s)", clock(d.MarkedAt), shortID(d.DrainID, verbose), d.MarkClass))
	}
	f.add("Created", ago(a.CreateTime, time.Now(), true))
	f.add("Modified", ago(a.ModifyTime, time.Now(), true))
	if a.PreviousAllocation != "" {
		f.add("Replaces", shortID(a.PreviousAllocation, verbose))
	}
	if a.NextAllocation != "" {
		f.add("Replaced By", shortID(a.NextAllocation, verbose))
	}
	if r := a.Resources; r != nil {
		f.add("Resources", fmt.Sprintf("%d MHz, %d MiB memory, %d MiB disk", number(r.CPU), number(r.MemoryMB), number(r.DiskMB)))
	}
	return &f
}

// AutocompleteArgs completes the allocation.
func (c *allocStatusCommand) AutocompleteArgs() complete.Predictor { return c.ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *allocStatusCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(statusFlags).set("alloc status"))
}

// alive reports whether an allocation runs or starts.
func alive(a *wire.Allocation) bool {
	return a.ClientStatus == string(cluster.ClientPending) || a.ClientStatus == string(cluster.ClientRunning)
}
