package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// jobStatusCommand is "nodedrain job status".
type jobStatusCommand struct{ operatorCommand }

const jobHelp = `Usage: nodedrain job <command> [options]

  Writes an example of a job, and plans, registers, shows and stops jobs.`

func (c *jobStatusCommand) Synopsis() string { return "List jobs, or show one job" }

func (c *jobStatusCommand) Help() string {
	return statusHelp("job status [options] [JOB]", `  Without JOB, lists the jobs of the namespace. With JOB, shows the job, its groups, why
  allocations cannot be placed, and its allocations. JOB is the job's id or a prefix of
  it.`)
}

func (c *jobStatusCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *jobStatusCommand) run(args []string) error {
	return showStatus(&c.operatorCommand, "job status", args, func(asked *client.Client, f *statusFlags) *lister[*wire.JobListStub] {
		l := jobs(&c.operatorCommand, asked)
		l.old = func(j *wire.JobListStub) bool { return j.Status == "dead" }
		l.one = func(j *wire.JobListStub) error { return c.one(asked, f, j.ID) }
		return l
	})
}

// jobs lists jobs.
func jobs(c *operatorCommand, asked *client.Client) *lister[*wire.JobListStub] {
	return &lister[*wire.JobListStub]{
		name: "job status", noun: "job",
		list: func(q client.Query) ([]*wire.JobListStub, client.Answer, error) { return asked.Jobs(c.ctx, q) },
		id:   func(j *wire.JobListStub) string { return j.ID },
		table: func(jobs []*wire.JobListStub) *table {
			t := newTable("ID", "Namespace", "Type", "Priority", "Status", "Running", "Starting", "Queued")
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
				t.row(j.ID, j.Namespace, j.Type, fmt.Sprint(j.Priority), status, fmt.Sprint(sum.Running), fmt.Sprint(sum.Starting), fmt.Sprint(sum.Queued))
			}
			return t
		},
	}
}

// one shows one job.
func (c *jobStatusCommand) one(asked *client.Client, f *statusFlags, id string) error {
	doing := func(err error) error { return saidf("Error querying job: %v", err) }
	job, _, err := asked.Job(c.ctx, id, client.Query{})
	switch {
	case err != nil:
		return doing(err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, job)
	}
	summary, _, err := asked.JobSummary(c.ctx, id, client.Query{})
	if err != nil {
		return doing(err)
	}
	evals, _, err := asked.JobEvaluations(c.ctx, id, client.Query{})
	if err != nil {
		return doing(err)
	}
	allocs, _, err := asked.JobAllocations(c.ctx, id, client.Query{})
	if err != nil {
		return doing(err)
	}
	jobFacts(job).write(c.out)
	fmt.Fprintln(c.out, "\nGroups")
	groupTable(job, summary).write(c.out)
	for _, e := range evals {
		if e.Status == "blocked" {
			fmt.Fprintf(c.out, "\nBlocked Evaluation %s\n", shortID(e.ID, f.verbose))
			shortages(c.out, e)
		}
	}
	printGivenUp(c.out, summary, f.verbose)
	printControllerCalls(c.out, summary.ControllerCalls, f.verbose)
	fmt.Fprintln(c.out, "\nAllocations")
	if !f.all {
		allocs = slices.DeleteFunc(allocs, endedAlloc)
	}
	if len(allocs) == 0 {
		fmt.Fprintln(c.out, "No allocations run or start")
		return nil
	}
	stubTable(allocs, f.verbose, time.Now()).write(c.out)
	return nil
}

func jobFacts(j *wire.Job) *facts {
	var f facts
	f.add("ID", *j.ID)
	f.add("Namespace", *j.Namespace)
	f.add("Type", *j.Type)
	f.add("Priority", fmt.Sprint(*j.Priority))
	f.add("Node Pool", *j.NodePool)
	f.add("Datacenters", cmp.Or(strings.Join(j.Datacenters, ","), "*"))
	f.add("Status", *j.Status)
	f.add("Stopped", fmt.Sprint(*j.Stop))
	f.add("Version", fmt.Sprint(*j.Version))
	return &f
}

func groupTable(j *wire.Job, sum *wire.JobSummary) *table {
	t := newTable("Group", "Count", "Max Parallel", "Queued", "Starting", "Running", "Failed", "Complete", "Lost", "Unknown")
	counts := maps.Clone(sum.Summary)
	row := func(name, count, pace string) {
		g := counts[name]
		delete(counts, name)
		t.row(name, count, pace, fmt.Sprint(g.Queued), fmt.Sprint(g.Starting), fmt.Sprint(g.Running), fmt.Sprint(g.Failed),
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

// AutocompleteArgs completes the job.
func (c *jobStatusCommand) AutocompleteArgs() complete.Predictor { return c.ids("jobs") }

// AutocompleteFlags completes the flags.
func (c *jobStatusCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(statusFlags).set("job status"))
}
