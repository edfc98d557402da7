package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// nodeExplainCommand is "nodedrain node explain".
type nodeExplainCommand struct{ operatorCommand }

// nodeExplainFlags are its flags.
type nodeExplainFlags struct {
	connectFlags
	outputFlags
	self, verbose bool
}

func (f *nodeExplainFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("node explain", flag.ContinueOnError)
	f.connectFlags.set(set)
	f.outputFlags.set(set)
	set.BoolVar(&f.self, "self", false, "")
	set.BoolVar(&f.verbose, "verbose", false, "")
	return set
}

func (c *nodeExplainCommand) Synopsis() string { return "Explain why a node has not drained yet" }

func (c *nodeExplainCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain node explain [options] NODE

  Shows why each allocation is still on a draining node: one reason with its numbers,
  when the reason began, and when it is due to end by itself. "seen" before a time
  means that the leader first saw the reason then. For a node that does not drain the
  command shows how its last drain ended. NODE is the node's name, its id or a
  prefix of the id.

Options:

  -self             Use the node of the agent at -address.
  -verbose          Show whole ids, and the evaluation or the allocations that each
                    allocation waits for.
` + outputHelp + "\n" + connectHelp)
}

func (c *nodeExplainCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *nodeExplainCommand) run(args []string) error {
	const doing = "Error explaining drain"
	var f nodeExplainFlags
	nodes, err := arguments(f.set(), "node explain", args)
	switch {
	case err != nil:
		return err
	case f.self && len(nodes) != 0 || !f.self && len(nodes) != 1:
		return misused("node explain", "Node ID must be specified if -self isn't being used")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	node, err := c.only(asked, nodes, doing)
	if err != nil {
		return err
	}
	report, _, err := asked.NodeDrain(c.ctx, node.ID, client.Query{})
	switch {
	case err != nil:
		return saidf("%s: %v", doing, err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, report)
	}
	c.explain(report, f.verbose)
	return nil
}

func (c *nodeExplainCommand) explain(r *wire.NodeDrain, verbose bool) {
	defer printControllerCalls(c.out, r.ControllerCalls, verbose)
	switch {
	case r.Drain == nil:
		fmt.Fprintf(c.out, "Node %q does not drain, and the servers have no record of a drain\n", r.NodeID)
		return
	case r.State != wire.StateDraining:
		fmt.Fprintf(c.out, "Node %q does not drain\n\nLast Drain\n", r.NodeID)
		drainFacts(r.Drain, nil).write(c.out)
		if t := holdTable(r.Drain.VolumesLeft, verbose); t != nil {
			fmt.Fprintln(c.out, "\nVolumes Left on the Node")
			t.write(c.out)
		}
		return
	}
	drainFacts(r.Drain, r.Progress).write(c.out)
	if r.Progress == nil {
		fmt.Fprintln(c.out, "\nThe server that answered is not the leader. Only the leader knows why allocations have not moved")
		return
	}
	if len(r.Allocs) == 0 {
		fmt.Fprintln(c.out, "\nNo allocations are left on the node")
		return
	}
	fmt.Fprintln(c.out, "\nReasons")
	reasonTable(r).write(c.out)
	fmt.Fprintln(c.out, "\nAllocations Left")
	leftTable(r.Allocs, verbose).write(c.out)
}

// drainFacts returns the facts of a drain. The progress is that of a running drain, or nil.
func drainFacts(d *wire.Drain, progress *wire.DrainProgress) *facts {
	var f facts
	f.add("Drain", d.ID)
	f.add("Node", d.NodeID)
	f.add("Name", d.NodeName)
	if d.Outcome == "" {
		f.add("Limit", limitText(d.Strategy))
	} else {
		f.add("Outcome", outcomeCell(d))
	}
	if d.Strategy != nil {
		f.add("Started", clock(d.Strategy.StartedAt))
	}
	if !d.EndedAt.IsZero() {
		f.add("Ended", clock(d.EndedAt))
	}
	if progress != nil {
		f.add("Left", stagesText(progress))
		if !progress.EndsBy.IsZero() {
			f.add("Ends By", clock(progress.EndsBy))
		}
	}
	if d.UpdatedBy != "" {
		f.add("By", d.UpdatedBy)
	}
	if meta := pairsText(d.Meta); meta != "" {
		f.add("Meta", meta)
	}
	return &f
}

// stagesText returns the number of allocations left in each stage.
func stagesText(p *wire.DrainProgress) string {
	text := fmt.Sprintf("%d consumers, %d system, %d storage plugins", p.Left.Consumers, p.Left.System, p.Left.StoragePlugins)
	if p.Ignored > 0 {
		text += fmt.Sprintf("; %d left by request", p.Ignored)
	}
	return text
}

// reasonTable counts allocations by reason, in the order in which reasons are tried.
func reasonTable(r *wire.NodeDrain) *table {
	t := newTable("Count", "Reason")
	for reason := range rules.ReasonCount {
		if n := r.Progress.Waiting[reason.String()]; n > 0 {
			t.row(fmt.Sprint(n), reason.String())
		}
	}
	return t
}

func leftTable(allocs []wire.DrainAlloc, verbose bool) *table {
	columns := []string{"ID", "Job", "Task Group", "Reason", "Since", "Due", "Detail"}
	if verbose {
		columns = []string{"ID", "Namespace", "Job", "Task Group", "Stage", "Reason", "Since", "Due", "Waits For", "Detail"}
	}
	t := newTable(columns...)
	for _, a := range allocs {
		if verbose {
			t.row(a.ID, a.Namespace, a.JobID, a.TaskGroup, a.Stage, a.Reason, sinceCell(a), timeCell(a.Due), waitsForCell(a), detailCell(a))
			continue
		}
		t.row(shortID(a.ID, false), a.JobID, a.TaskGroup, a.Reason, sinceCell(a), timeCell(a.Due), detailCell(a))
	}
	return t
}

func sinceCell(a wire.DrainAlloc) string {
	if a.SinceSeen && !a.Since.IsZero() {
		return "seen " + clock(a.Since)
	}
	return timeCell(a.Since)
}

// detailCell is the detail of a reason, and what each task waits for. The reason has named the volumes that
// a storage plugin waits for, so its tasks say only until when.
func detailCell(a wire.DrainAlloc) string {
	parts := []string{localTimes(a.Detail)}
	for _, task := range slices.Sorted(maps.Keys(a.Waiting)) {
		w := *a.Waiting[task]
		if a.Reason == rules.ReasonHeldForVolumes.String() {
			w.Detail = ""
		}
		parts = append(parts, fmt.Sprintf("task %q waits for %s", task, waitText(&w, time.Now())))
	}
	return strings.Join(parts, "; ")
}

// waitsForCell names the evaluation or the allocations that an allocation waits for.
func waitsForCell(a wire.DrainAlloc) string {
	switch {
	case a.EvalID != "":
		return fmt.Sprintf("evaluation %s (%s)", a.EvalID, a.EvalStatus)
	case len(a.Outstanding) > 0:
		return strings.Join(a.Outstanding, " ")
	}
	return "-"
}

// AutocompleteArgs completes the node.
func (c *nodeExplainCommand) AutocompleteArgs() complete.Predictor { return c.nodeIDs() }

// AutocompleteFlags completes the flags.
func (c *nodeExplainCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(nodeExplainFlags).set())
}
