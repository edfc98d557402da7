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

// evalStatusCommand is "nodedrain eval status".
type evalStatusCommand struct{ operatorCommand }

const evalHelp = `Usage: nodedrain eval <command> [options]

  Shows evaluations: requests to the scheduler to place or stop allocations of a job.`

func (c *evalStatusCommand) Synopsis() string { return "List evaluations, or show one" }

func (c *evalStatusCommand) Help() string {
	return statusHelp("eval status [options] [EVAL]", `  Without EVAL, lists the evaluations of the namespace that are pending or blocked. With
  EVAL, shows the evaluation. If it is blocked, or has created a blocked one, the command
  shows the missing resources and the constraints that exclude nodes, and on how many
  nodes. The servers compute this from their current state. EVAL is the evaluation's id or
  a prefix of it.`)
}

func (c *evalStatusCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *evalStatusCommand) run(args []string) error {
	return showStatus(&c.operatorCommand, "eval status", args, func(asked *client.Client, f *statusFlags) *lister[*wire.Evaluation] {
		return &lister[*wire.Evaluation]{
			name: "eval status", noun: "evaluation",
			list:  func(q client.Query) ([]*wire.Evaluation, client.Answer, error) { return asked.Evaluations(c.ctx, q) },
			id:    func(e *wire.Evaluation) string { return e.ID },
			old:   func(e *wire.Evaluation) bool { return !openEval(e) },
			table: func(evals []*wire.Evaluation) *table { return evalTable(evals, f.verbose) },
			one:   func(e *wire.Evaluation) error { return c.one(asked, f, e.ID) },
		}
	})
}

// openEval reports whether the scheduler still has to act on an evaluation.
func openEval(e *wire.Evaluation) bool {
	return e.Status == string(cluster.EvalPending) || e.Status == string(cluster.EvalBlocked)
}

// evalTable lists evaluations, newest first.
func evalTable(evals []*wire.Evaluation, verbose bool) *table {
	evals = slices.Clone(evals)
	slices.SortStableFunc(evals, func(a, b *wire.Evaluation) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	t := newTable("ID", "Job", "Priority", "Triggered By", "Status", "Waiting", "Created")
	for _, e := range evals {
		waiting := 0
		for _, n := range e.QueuedAllocations {
			waiting += n
		}
		t.row(shortID(e.ID, verbose), jobName(e.Namespace, e.JobID), fmt.Sprint(e.Priority), e.TriggeredBy, e.Status, fmt.Sprint(waiting),
			ago(e.CreateTime, time.Now(), verbose))
	}
	return t
}

// one shows one evaluation.
func (c *evalStatusCommand) one(asked *client.Client, f *statusFlags, id string) error {
	e, _, err := asked.Evaluation(c.ctx, id, client.Query{})
	switch {
	case err != nil:
		return saidf("Error querying evaluation: %v", err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, e)
	}
	evalFacts(e, f.verbose).write(c.out)
	if e.Status == string(cluster.EvalBlocked) || len(e.FailedTGAllocs) > 0 {
		fmt.Fprintln(c.out, "\nWaiting Allocations")
		shortages(c.out, e)
	}
	return nil
}

func evalFacts(e *wire.Evaluation, verbose bool) *facts {
	var f facts
	f.add("ID", e.ID)
	f.add("Job", jobName(e.Namespace, e.JobID))
	f.add("Type", e.Type)
	f.add("Priority", fmt.Sprint(e.Priority))
	f.add("Triggered By", e.TriggeredBy)
	f.add("Status", joined(e.Status, e.StatusDescription))
	if e.NodeID != "" {
		f.add("Node", shortID(e.NodeID, verbose))
	}
	if e.PreviousEval != "" {
		f.add("Made By", shortID(e.PreviousEval, verbose))
	}
	if e.BlockedEval != "" {
		f.add("Blocked Eval", shortID(e.BlockedEval, verbose))
	}
	for _, group := range slices.Sorted(maps.Keys(e.QueuedAllocations)) {
		f.add("Waiting", fmt.Sprintf("%d of group %q", e.QueuedAllocations[group], group))
	}
	f.add("Created", ago(e.CreateTime, time.Now(), true))
	f.add("Modified", ago(e.ModifyTime, time.Now(), true))
	return &f
}

// AutocompleteArgs completes the evaluation.
func (c *evalStatusCommand) AutocompleteArgs() complete.Predictor { return c.ids("evals") }

// AutocompleteFlags completes the flags.
func (c *evalStatusCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(statusFlags).set("eval status"))
}
