package job

import (
	"cmp"
	"fmt"
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

// Status is "nodedrain job status".
func Status() *cli.Command {
	return cli.Status("List jobs, or show one job", "job status [options] [JOB]", `  Without JOB, lists the jobs of the namespace. With JOB, shows the job, its groups, why
  allocations cannot be placed, and its allocations. JOB is the job's id or a prefix of
  it.`, "jobs", func(call *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.JobListStub] {
		c, api := &statusCommand{call}, call.API
		l := jobs(&c.Base, api)
		l.Old = func(j *wire.JobListStub) bool { return j.Status == "dead" }
		l.One = func(j *wire.JobListStub) error { return c.one(api, f, j.ID) }
		return l
	})
}

type statusCommand struct{ *cli.Call }

// Help is the help of the parent command.
const Help = `Usage: nodedrain job <command> [options]

  Writes an example of a job, and plans, registers, shows and stops jobs.`

// jobs lists jobs.
func jobs(c *cli.Base, api *client.Client) *cli.Lister[*wire.JobListStub] {
	return &cli.Lister[*wire.JobListStub]{
		Noun: "job",
		List: func(q client.Query) ([]*wire.JobListStub, client.Answer, error) { return api.Jobs(c.Ctx, q) },
		ID:   func(j *wire.JobListStub) string { return j.ID },
		Table: func(jobs []*wire.JobListStub) *cli.Table {
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
		},
	}
}

// one shows one job.
func (c *statusCommand) one(api *client.Client, f *cli.StatusFlags, id string) error {
	doing := func(err error) error { return cli.Errorf("Error querying job: %v", err) }
	job, _, err := api.Job(c.Ctx, id, client.Query{})
	switch {
	case err != nil:
		return doing(err)
	case c.Raw():
		return c.PrintRaw(job)
	}
	summary, _, err := api.JobSummary(c.Ctx, id, client.Query{})
	if err != nil {
		return doing(err)
	}
	evals, _, err := api.JobEvaluations(c.Ctx, id, client.Query{})
	if err != nil {
		return doing(err)
	}
	allocs, _, err := api.JobAllocations(c.Ctx, id, client.Query{})
	if err != nil {
		return doing(err)
	}
	jobFacts(job).Write(c.Out)
	fmt.Fprintln(c.Out, "\nGroups")
	groupTable(job, summary).Write(c.Out)
	for _, e := range evals {
		if e.Status == "blocked" {
			fmt.Fprintf(c.Out, "\nBlocked Evaluation %s\n", cli.ShortID(e.ID, f.Verbose))
			eval.Shortages(c.Out, e)
		}
	}
	printGivenUp(c.Out, summary, f.Verbose)
	volume.PrintControllerCalls(c.Out, summary.ControllerCalls, f.Verbose)
	fmt.Fprintln(c.Out, "\nAllocations")
	if !f.All {
		allocs = slices.DeleteFunc(allocs, alloc.EndedAlloc)
	}
	if len(allocs) == 0 {
		fmt.Fprintln(c.Out, "No allocations run or start")
		return nil
	}
	alloc.StubTable(allocs, f.Verbose, time.Now()).Write(c.Out)
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
