package job

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/volume"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Help is the help of the parent command.
const Help = `
  Writes an example of a job; checks, plans, registers, shows and stops jobs.`

// Status is "nodedrain job status".
func Status() *cli.Command {
	return cli.Status("List jobs, or show one job", "[JOB]", `
  Without JOB, lists the jobs of the namespace. With JOB, shows the job, its groups, why
  allocations cannot be placed, and its allocations. JOB is the job's id or a prefix of
  it.
`, func(c *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.JobListStub, *wire.Job] {
		l := jobs(c)
		l.Show = func(j *wire.Job) error { return show(c, f, j) }
		return l
	})
}

// jobs lists jobs.
func jobs(c *cli.Call) *cli.Lister[*wire.JobListStub, *wire.Job] {
	return &cli.Lister[*wire.JobListStub, *wire.Job]{
		Noun:  "job",
		List:  c.API.Jobs,
		ID:    func(j *wire.JobListStub) string { return j.ID },
		Old:   func(j *wire.JobListStub) bool { return j.Status == "dead" },
		Table: stubTable,
		Read:  c.API.Job,
	}
}

// stubTable lists jobs.
func stubTable(jobs []*wire.JobListStub) *cli.Table {
	t := cli.NewTable("ID", "Namespace", "Type", "Priority", "Status", "Running", "Starting", "Queued")
	for _, j := range jobs {
		var sum wire.GroupSummary
		if j.JobSummary != nil {
			for _, g := range j.JobSummary.Summary {
				sum.Running, sum.Starting, sum.Queued = sum.Running+g.Running, sum.Starting+g.Starting, sum.Queued+g.Queued
			}
		}
		status := j.Status
		if j.Stop {
			status += " (stopped)"
		}
		t.Row(j.ID, j.Namespace, j.Type, fmt.Sprint(j.Priority), status, fmt.Sprint(sum.Running), fmt.Sprint(sum.Starting), fmt.Sprint(sum.Queued))
	}
	return t
}

// show prints one job.
func show(c *cli.Call, f *cli.StatusFlags, job *wire.Job) error {
	summary, _, err := c.API.JobSummary(c.Ctx, *job.ID, client.Query{})
	if err != nil {
		return cli.Errorf("Error querying job: %v", err)
	}
	evals, _, err := c.API.JobEvaluations(c.Ctx, *job.ID, client.Query{})
	if err != nil {
		return cli.Errorf("Error querying job: %v", err)
	}
	allocs, _, err := c.API.JobAllocations(c.Ctx, *job.ID, client.Query{})
	if err != nil {
		return cli.Errorf("Error querying job: %v", err)
	}
	jobFacts(job).Write(c.Out)
	c.Section("Groups", groupTable(job, summary))
	for _, e := range evals {
		if e.Status == "blocked" {
			fmt.Fprintf(c.Out, "\nBlocked Evaluation %s\n", cli.ShortID(e.ID, f.Verbose))
			eval.Shortages(c.Out, e)
		}
	}
	printGivenUp(c.Out, summary, f.Verbose)
	printRescheduled(c.Out, summary, f.Verbose, time.Now())
	printRollouts(c.Out, summary, f.Verbose)
	volume.PrintControllerCalls(&c.Base, summary.ControllerCalls, f.Verbose)
	if !f.All {
		allocs = slices.DeleteFunc(allocs, alloc.EndedAlloc)
	}
	if len(allocs) == 0 {
		fmt.Fprintln(c.Out, "\nAllocations\nNo allocations run or start")
		return nil
	}
	c.Section("Allocations", alloc.StubTable(allocs, f.Verbose, time.Now()))
	return nil
}

func jobFacts(j *wire.Job) *cli.Facts {
	var f cli.Facts
	f.Add("ID", *j.ID)
	f.Add("Namespace", *j.Namespace)
	f.Add("Type", *j.Type)
	f.Add("Priority", fmt.Sprint(*j.Priority))
	f.Add("Node Pool", *j.NodePool)
	f.Add("Datacenters", cmp.Or(strings.Join(j.Datacenters, ","), "*"))
	f.Add("Status", *j.Status)
	f.Add("Stopped", fmt.Sprint(*j.Stop))
	f.Add("Version", fmt.Sprint(*j.Version))
	return &f
}

func groupTable(j *wire.Job, sum *wire.JobSummary) *cli.Table {
	t := cli.NewTable("Group", "Count", "Max Parallel", "Queued", "Starting", "Running", "Failed", "Complete", "Lost", "Unknown")
	counts := maps.Clone(sum.Summary)
	row := func(name, count, pace string) {
		g := counts[name]
		delete(counts, name)
		t.Row(name, count, pace, fmt.Sprint(g.Queued), fmt.Sprint(g.Starting), fmt.Sprint(g.Running), fmt.Sprint(g.Failed),
			fmt.Sprint(g.Complete), fmt.Sprint(g.Lost), fmt.Sprint(g.Unknown))
	}
	for _, g := range j.TaskGroups {
		pace := "-"
		if g.Migrate != nil && g.Migrate.MaxParallel != nil {
			pace = fmt.Sprint(*g.Migrate.MaxParallel)
		}
		row(*g.Name, fmt.Sprint(*g.Count), pace)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) { // groups of earlier versions
		row(name, "-", "-")
	}
	return t
}

// printGivenUp prints why slots of a job's groups stay empty, and what fills them again.
func printGivenUp(out io.Writer, sum *wire.JobSummary, verbose bool) {
	for _, name := range slices.Sorted(maps.Keys(sum.GivenUp)) {
		g := sum.GivenUp[name]
		slots, those := cli.Count(g.Slots, "slot")+" stay", "the slots"
		if g.Slots == 1 {
			slots, those = "1 slot stays", "the slot"
		}
		why, limit := "too many allocations in a row failed", fmt.Sprintf("The scheduler replaced %d in a row, the maximum, and then gave up", g.Replaced)
		if g.Policy != "" {
			why, limit = "the attempts of its reschedule policy are spent", "The policy permits "+g.Policy
		}
		fmt.Fprintf(out, "\nGroup %q: %s empty, because %s\n", name, slots, why)
		for _, line := range []string{
			fmt.Sprintf("%s failed for good. %s", cli.Count(g.Failed, "allocation"), limit),
			"Last failure: " + failureText(g, verbose),
			fmt.Sprintf("To fill %s: change the group's tasks or disk%s, then nodedrain job run FILE", those, orPolicy(g)),
			fmt.Sprintf("If the cause was outside the job: nodedrain job stop -purge %s, then nodedrain job run FILE", sum.JobID),
		} {
			fmt.Fprintf(out, "  * %s\n", cli.SingleLine(line))
		}
	}
}

// orPolicy names the policy of a group that has one.
func orPolicy(g wire.GroupGivenUp) string {
	if g.Policy == "" {
		return ""
	}
	return " or its reschedule block"
}

// printRescheduled prints when ended allocations of a job's groups are replaced.
func printRescheduled(out io.Writer, sum *wire.JobSummary, verbose bool, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(sum.Rescheduled)) {
		g := sum.Rescheduled[name]
		fmt.Fprintf(out, "\nGroup %q: %s failed and will be replaced\n", name, cli.Count(g.Allocs, "allocation"))
		when := "is due now"
		if wait := g.DueAt.Sub(now); wait > 0 {
			when = fmt.Sprintf("is due in %s, at %s", max(wait.Truncate(time.Second), time.Second), g.DueAt.Local().Format(time.DateTime))
		}
		fmt.Fprintf(out, "  * The replacement of allocation %s %s. %s before it\n", cli.ShortID(g.AllocID, verbose), when, cli.Count(g.Attempts, "attempt"))
	}
}

// printRollouts prints how many allocations of a job have an older version, and why they stay.
func printRollouts(out io.Writer, sum *wire.JobSummary, verbose bool) {
	for _, name := range slices.Sorted(maps.Keys(sum.Rollouts)) {
		r := sum.Rollouts[name]
		fmt.Fprintf(out, "\nGroup %q: the new version has still to replace %s\n", name, cli.Count(r.Outdated, "allocation"))
		switch {
		case r.UnhealthyAllocID != "":
			id := cli.ShortID(r.UnhealthyAllocID, verbose)
			fmt.Fprintf(out, "  * The rollout has stopped: allocation %s of the new version is unhealthy\n", id)
			if r.UnhealthyBecause != "" {
				fmt.Fprintf(out, "  * %s\n", cli.SingleLine(r.UnhealthyBecause))
			}
			fmt.Fprintf(out, "  * It continues when this allocation has recovered, or with a newer version. See: nodedrain alloc status %s\n", id)
		case r.Why != "":
			fmt.Fprintf(out, "  * It waits: %s\n", cli.SingleLine(r.Why))
		}
	}
}

// failureText returns which task failed, where, when and how.
func failureText(g wire.GroupGivenUp, verbose bool) string {
	at := fmt.Sprintf("allocation %s on node %s", cli.ShortID(g.AllocID, verbose), cli.ShortID(g.NodeID, verbose))
	if g.Task == "" {
		return at + ": " + cmp.Or(g.Message, "its client did not report how")
	}
	text := fmt.Sprintf("task %q of %s at %s: %s", g.Task, at, cli.Clock(g.At), g.Event)
	if message := strings.TrimSpace(g.Message); message != "" {
		text += ": " + message
	}
	return text
}
