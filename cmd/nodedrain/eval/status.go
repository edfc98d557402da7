package eval

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain eval status".
func Status() *cli.Command {
	return cli.Status("List evaluations, or show one", "[EVAL]", `
  Without EVAL, lists the evaluations of the namespace that are pending or blocked. With
  EVAL, shows the evaluation. If it is blocked, or has created a blocked one, the command
  shows the missing resources and the constraints that exclude nodes, and on how many
  nodes. The servers compute this from their current state. EVAL is the evaluation's id or
  a prefix of it.
`, func(c *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.Evaluation, *wire.Evaluation] {
		return &cli.Lister[*wire.Evaluation, *wire.Evaluation]{
			Noun:  "evaluation",
			List:  c.API.Evaluations,
			ID:    func(e *wire.Evaluation) string { return e.ID },
			Old:   func(e *wire.Evaluation) bool { return !openEval(e) },
			Table: func(evals []*wire.Evaluation) *cli.Table { return evalTable(evals, f.Verbose) },
			Read:  c.API.Evaluation,
			Show: func(e *wire.Evaluation) error {
				evalFacts(e, f.Verbose).Write(c.Out)
				if e.Status == string(cluster.EvalBlocked) || len(e.FailedTGAllocs) > 0 {
					fmt.Fprintln(c.Out, "\nWaiting Allocations")
					Shortages(c.Out, e)
				}
				return nil
			},
		}
	})
}

// Help is the help of the parent command.
const Help = `
  Shows evaluations: requests to the scheduler to place or stop allocations of a job.`

// openEval reports whether the scheduler still has to act on an evaluation.
func openEval(e *wire.Evaluation) bool {
	return e.Status == string(cluster.EvalPending) || e.Status == string(cluster.EvalBlocked)
}

// evalTable lists evaluations, newest first.
func evalTable(evals []*wire.Evaluation, verbose bool) *cli.Table {
	evals = slices.Clone(evals)
	slices.SortStableFunc(evals, func(a, b *wire.Evaluation) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	t := cli.NewTable("ID", "Job", "Priority", "Triggered By", "Status", "Waiting", "Created")
	for _, e := range evals {
		waiting := 0
		for _, n := range e.QueuedAllocations {
			waiting += n
		}
		t.Row(cli.ShortID(e.ID, verbose), cli.JobName(e.Namespace, e.JobID), fmt.Sprint(e.Priority), e.TriggeredBy, e.Status, fmt.Sprint(waiting),
			cli.Ago(e.CreateTime, time.Now(), verbose))
	}
	return t
}

func evalFacts(e *wire.Evaluation, verbose bool) *cli.Facts {
	var f cli.Facts
	f.Add("ID", e.ID)
	f.Add("Job", cli.JobName(e.Namespace, e.JobID))
	f.Add("Type", e.Type)
	f.Add("Priority", fmt.Sprint(e.Priority))
	f.Add("Triggered By", e.TriggeredBy)
	f.Add("Status", cli.Joined(e.Status, e.StatusDescription))
	f.AddAny("Node", cli.ShortID(e.NodeID, verbose))
	f.AddAny("Made By", cli.ShortID(e.PreviousEval, verbose))
	f.AddAny("Blocked Eval", cli.ShortID(e.BlockedEval, verbose))
	for _, group := range slices.Sorted(maps.Keys(e.QueuedAllocations)) {
		f.Add("Waiting", fmt.Sprintf("%d of group %q", e.QueuedAllocations[group], group))
	}
	f.Add("Created", cli.Ago(e.CreateTime, time.Now(), true))
	f.Add("Modified", cli.Ago(e.ModifyTime, time.Now(), true))
	return &f
}

// Shortages prints why an evaluation's allocations cannot be placed.
func Shortages(out io.Writer, e *wire.Evaluation) {
	GroupShortages(out, e.FailedTGAllocs)
	if len(e.FailedTGAllocs) == 0 {
		fmt.Fprintln(out, "Every waiting allocation is placed now, or its group is gone")
	}
}

// GroupShortages prints why allocations of groups cannot be placed.
func GroupShortages(out io.Writer, failed map[string]*wire.AllocationMetric) {
	for _, group := range slices.Sorted(maps.Keys(failed)) {
		m := failed[group]
		fmt.Fprintf(out, "Group %q: %s cannot be placed:\n", group, cli.Count(m.CoalescedFailures+1, "allocation"))
		for _, line := range shortageLines(m) {
			fmt.Fprintf(out, "  * %s\n", cli.SingleLine(line))
		}
	}
}

// shortageLines returns what excludes nodes, and how many.
func shortageLines(m *wire.AllocationMetric) (lines []string) {
	if m.NodesEvaluated == 0 {
		lines = append(lines, fmt.Sprintf("No ready node is in the job's datacenters and its node pool %q", m.NodePool))
	}
	each := func(counts map[string]int, format string) {
		for _, cause := range slices.Sorted(maps.Keys(counts)) {
			lines = append(lines, fmt.Sprintf(format, cause, cli.Count(counts[cause], "node")))
		}
	}
	each(m.ConstraintFiltered, "Constraint %q excludes %s")
	each(m.DimensionExhausted, "Not enough %s on %s")
	if n := m.NodesEvaluated - m.NodesFiltered - m.NodesExhausted; n > 0 {
		lines = append(lines, fmt.Sprintf("%s room for one allocation: the scheduler will retry", has(n)))
	}
	if m.Nearest != nil {
		lines = append(lines, fmt.Sprintf("Nearest is node %s (%s): it lacks %s", m.Nearest.Name, cli.ShortID(m.Nearest.ID, false), shortText(m.Nearest.Short)))
	}
	each(m.NodesNotReady, "Not ready (%s): %s")
	return lines
}

func has(n int) string {
	if n == 1 {
		return "1 node has"
	}
	return fmt.Sprintf("%d nodes have", n)
}

// shortText returns amounts with their units.
func shortText(short map[string]int64) string {
	units := map[string]string{"cpu": " MHz", "memory": " MiB", "disk": " MiB", "gpu": " thousandths"}
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(short)) {
		parts = append(parts, fmt.Sprintf("%d%s of %s", short[resource], units[resource], resource))
	}
	return strings.Join(parts, " and ")
}
