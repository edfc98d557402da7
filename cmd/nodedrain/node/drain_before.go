package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// drainBefore returns the drain that runs on the node before the request, or nil.
func drainBefore(c *cli.Call, node *wire.Node) *wire.Drain {
	if node.DrainStrategy == nil {
		return nil
	}
	report, _, err := c.API.NodeDrain(c.Ctx, node.ID, client.Query{})
	if err == nil && report.State == wire.StateDraining {
		return report.Drain
	}
	before := &wire.Drain{NodeID: node.ID, Strategy: node.DrainStrategy}
	if node.LastDrain != nil {
		before.Meta, before.UpdatedBy = node.LastDrain.Meta, node.LastDrain.AccessorID
	}
	return before
}

// drainLine returns a running drain in one line: its limit, its start, who set it and why.
func drainLine(d *wire.Drain) string {
	text := cli.LimitText(d.Strategy) + ", started " + cli.Clock(d.Strategy.StartedAt)
	if by := cli.Author(d.UpdatedBy); by != "" {
		text += fmt.Sprintf(", set by %q", by)
	}
	if meta := cli.PairsText(d.Meta); meta != "" {
		text += ", " + meta
	}
	return cli.SingleLine(text)
}

// confirm shows what a request would change and requires an answer, unless the command line has a whole id or
// -yes. A change of a running drain always requires one: a colleague may have set its deadline.
func (r *drainRequest) confirm(idOrName string) error {
	changes := r.enable && r.before != nil
	if r.yes || idOrName == r.node.ID && !changes {
		return nil
	}
	verb, node := "disable", drain.NodeText(r.node)
	if r.enable {
		verb = "enable"
		allocs, _, err := r.c.API.NodeAllocations(r.c.Ctx, r.node.ID, client.Query{})
		if err != nil {
			return cli.Errorf("Error querying node allocations: %v", err)
		}
		fmt.Fprintln(r.c.Out, movingText(r.node, allocs, r.IgnoreSystem))
		if cli.TerminalWidth(r.c.Out) > 0 && !r.plan {
			fmt.Fprintln(r.c.Out, r.headline())
		}
	}
	question := fmt.Sprintf("Are you sure you want to %s drain mode for node %s? [y/N]", verb, node)
	if changes {
		fmt.Fprintf(r.c.Out, "Node %s drains already: %s\n", node, drainLine(r.before))
		fmt.Fprintf(r.c.Out, "The change: %s\n", r.changeText())
		question = fmt.Sprintf("Are you sure you want to change the drain of node %s? [y/N]", node)
	}
	err := r.c.Confirm(question, "Canceling drain toggle")
	if changes && errors.Is(err, cli.ErrNoAnswer) {
		return cli.Errorf("Node %s drains already, and the change was not confirmed: use -yes", node)
	}
	return err
}

// changeText describes the strategy of a request.
func (r *drainRequest) changeText() string {
	limit, err := r.Limit()
	text := "no deadline"
	switch {
	case err != nil:
		return err.Error()
	case limit < 0:
		text = "force drain"
	case limit > 0:
		text = "a deadline " + limit.String() + " from now"
	}
	if r.IgnoreSystem {
		text += "; ignoring system jobs"
	}
	if r.MaxSurge > 0 {
		text += fmt.Sprintf("; max_surge %d", r.MaxSurge)
	}
	return text
}

// headlineTime is how long a question waits for the plan of the drain.
const headlineTime = 300 * time.Millisecond

// foretold is what a drain keeps of its plan.
func foretold(p *drainplan.Answer) *wire.DrainPlan {
	return &wire.DrainPlan{Sentence: p.Sentence, Index: p.Index, Took: p.Took, Least: p.Least, Most: p.Most}
}

// headline returns what the drain would do in one line. The drain keeps it.
func (r *drainRequest) headline() string {
	limit, err := r.Limit()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(r.c.Ctx, headlineTime)
	defer cancel()
	plan, _, err := client.PlanDrains(ctx, r.c.API, drainplan.Request{
		Nodes: []string{r.node.ID}, DrainSpec: r.Spec(limit), Plays: 1,
	})
	switch {
	case ctx.Err() != nil:
		return "The plan is not ready: to wait for it, use -plan"
	case err != nil:
		return "There is no plan: " + cli.SingleLine(err.Error())
	}
	r.foretold = foretold(plan)
	return "Plan: " + plan.Sentence
}

// mostJobs bounds the jobs that a confirmation names.
const mostJobs = 8

// movingText returns how many allocations of which jobs a drain moves.
func movingText(node *wire.Node, allocs []*wire.Allocation, skipSystem bool) string {
	counts := map[string]int{}
	total := 0
	leaves := drain.Follower{SkipSystem: skipSystem}
	for _, a := range allocs {
		if alloc.Alive(a) && !leaves.Stays(a) {
			counts[cli.JobName(a.Namespace, a.JobID)]++
			total++
		}
	}
	jobs := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(jobs, func(a, b string) int { return counts[b] - counts[a] })
	var parts []string
	for i, job := range jobs {
		if i == mostJobs {
			parts = append(parts, fmt.Sprintf("and others of %s", cli.Count(len(jobs)-i, "job")))
			break
		}
		parts = append(parts, fmt.Sprintf("%d of %s", counts[job], job))
	}
	if total == 0 {
		return fmt.Sprintf("Node %s has no allocations to move", drain.NodeText(node))
	}
	text := fmt.Sprintf("Node %s has %s to move: %s", drain.NodeText(node), cli.Count(total, "allocation"), strings.Join(parts, ", "))
	if skipSystem && slices.ContainsFunc(allocs, func(a *wire.Allocation) bool {
		return alloc.Alive(a) && leaves.Stays(a) && alloc.GroupOf(a) != nil && len(alloc.GroupOf(a).Volumes) > 0
	}) {
		text += "; storage plugins that serve system jobs stay"
	}
	return cli.SingleLine(text)
}

// stopsFirst returns lines about the groups that the max_surge of the request does not concern.
func (r *drainRequest) stopsFirst() ([]string, error) {
	if r.MaxSurge == 0 {
		return nil, nil
	}
	allocs, _, err := r.c.API.NodeAllocations(r.c.Ctx, r.node.ID, client.Query{})
	if err != nil {
		return nil, cli.Errorf("Error querying node allocations: %v", err)
	}
	return drain.StopsFirstAmong(allocs).Lines(), nil
}

// printPaused prints that a drain is paused after a request that has set it: all drains are, or it was before.
func (r *drainRequest) printPaused() {
	report, _, err := r.c.API.NodeDrain(r.c.Ctx, r.node.ID, client.Query{})
	if err != nil || report.State != wire.StateDraining {
		return
	}
	if text := drain.PausedText(report.Drain); text != "" {
		fmt.Fprintf(r.c.Out, "The drain is paused %s\n", text)
	}
}

// printReplaced prints which drain a request replaced.
func (r *drainRequest) printReplaced() {
	if r.before != nil {
		fmt.Fprintf(r.c.Out, "This replaced the limit of the drain that ran already: %s\n", drainLine(r.before))
	}
}
