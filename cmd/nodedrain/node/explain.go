package node

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/volume"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Explain is "nodedrain node explain".
func Explain() *cli.Command {
	var f explainFlags
	return &cli.Command{
		Short: "Explain why a node has not drained yet",
		Description: `
  Shows why each allocation is still on a draining node: one reason with its numbers,
  when the reason began, and when it is due to end by itself. "Causes" names the
  allocation or the evaluation that causes a reason, and the command that shows more.
  "seen" before a time means that the leader first observed the reason then. For a node
  that does not drain the command shows how its last drain ended. NODE is the node's name,
  its id or a prefix of the id.
`,
		Args: "NODE", CountsArgs: true, Connects: true, Formats: true, Run: f.run,
		Options: cli.Options{
			selfFlag(&f.self),
			cli.Flag(&f.verbose, "verbose", "Show whole ids, and the evaluation or the allocations that each allocation waits for."),
		},
	}
}

// explainFlags are its flags.
type explainFlags struct{ self, verbose bool }

func (f *explainFlags) run(c *cli.Call) error {
	const doing = "Error explaining drain"
	if text := nodeOrSelf(len(c.Args), f.self); text != "" {
		return c.UsageError(text)
	}
	node, err := c.Only(doing)
	if err != nil {
		return err
	}
	report, _, err := c.API.NodeDrain(c.Ctx, node.ID, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("%s: %v", doing, err)
	case c.Raw():
		return c.PrintRaw(report)
	}
	explain(&c.Base, report, f.verbose)
	volume.PrintControllerCalls(&c.Base, report.ControllerCalls, f.verbose)
	return nil
}

func explain(c *cli.Base, r *wire.NodeDrain, verbose bool) {
	switch {
	case r.Drain == nil:
		fmt.Fprintf(c.Out, "Node %q does not drain, and the servers have no record of a drain\n", r.NodeID)
		return
	case r.State != wire.StateDraining:
		fmt.Fprintf(c.Out, "Node %q does not drain\n\nLast Drain\n", r.NodeID)
		drainFacts(r.Drain, nil).Write(c.Out)
		c.SectionIfAny("Volumes Left on the Node", volume.HoldTable(r.Drain.VolumesLeft, verbose))
		printNotCopied(c, r.Drain)
		printUnconfirmed(c, r.Drain)
		return
	}
	drainFacts(r.Drain, r.Progress).Write(c.Out)
	switch {
	case r.Progress == nil:
		fmt.Fprintln(c.Out, "\nThe server that answered is not the leader. Only the leader has the reasons why allocations have not moved")
	case len(r.Allocs) == 0:
		fmt.Fprintln(c.Out, "\nNo allocations are left on the node")
	default:
		c.Section("Reasons", reasonTable(r))
		c.Section("Allocations Left", leftTable(r.Allocs, verbose))
		printCauses(c.Out, r.Allocs, verbose)
		if lines := drain.StopsFirstOnNode(r.Allocs).Lines(); len(lines) > 0 {
			fmt.Fprintf(c.Out, "\n%s\n", strings.Join(lines, "\n"))
		}
	}
}

// printNotCopied lists the allocations of an ended drain whose data no replacement had.
func printNotCopied(c *cli.Base, d *wire.Drain) {
	lines := drain.NotCopiedLines(d)
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(c.Out, "\nEphemeral Data")
	for _, line := range lines {
		fmt.Fprintln(c.Out, line)
	}
}

// printUnconfirmed lists the allocations of an ended drain whose end nothing confirms.
func printUnconfirmed(c *cli.Base, d *wire.Drain) {
	left := drain.UnconfirmedIn(d)
	if !left.Any() {
		return
	}
	fmt.Fprintln(c.Out, "\nUnconfirmed Allocations")
	for _, line := range left.Lines() {
		fmt.Fprintln(c.Out, line)
	}
	fmt.Fprintf(c.Out, "Their tasks may still run. If the machine is off, or no task of them runs: nodedrain drain confirm %s\n", d.ID)
}

// drainFacts returns the facts of a drain. The progress is that of a running drain, or nil.
func drainFacts(d *wire.Drain, progress *wire.DrainProgress) *cli.Facts {
	var f cli.Facts
	f.Add("Drain", d.ID)
	f.Add("Node", d.NodeID)
	f.Add("Name", d.NodeName)
	if d.Outcome == "" {
		f.Add("Limit", cli.LimitText(d.Strategy))
	} else {
		f.Add("Outcome", drain.OutcomeCell(d))
	}
	if d.Strategy != nil {
		f.Add("Started", cli.Clock(d.Strategy.StartedAt))
	}
	if !d.EndedAt.IsZero() {
		f.Add("Ended", cli.Clock(d.EndedAt))
	}
	f.AddAny("Paused", drain.PausedText(d))
	if progress != nil {
		f.Add("Left", stagesText(progress))
		f.AddAny("Placed", drain.PlacedText(progress))
		f.AddAny("Stalled", cli.LocalTimes(progress.Stalled))
		if progress.Unconfirmed > 0 {
			f.Add("Unconfirmed", cli.Count(progress.Unconfirmed, "allocation")+": their tasks may still run")
		}
		f.AddAny("Time Left", drain.TimeLeftText(progress, time.Now()))
		if !progress.EndsBy.IsZero() {
			f.Add("Ends By", cli.Clock(progress.EndsBy))
		}
	}
	if !d.ConfirmedAt.IsZero() {
		f.Add("Confirmed", cli.Clock(d.ConfirmedAt))
		f.AddAny("Confirmed By", cli.Author(d.ConfirmedBy))
	}
	f.AddAny("Confirmed With", drain.OtherConfirmationText(d))
	f.AddAny("By", cli.Author(d.UpdatedBy))
	f.AddAny("Meta", cli.PairsText(d.Meta))
	return &f
}

// stagesText returns the number of allocations left in each stage.
func stagesText(p *wire.DrainProgress) string {
	text := fmt.Sprintf("%s, %d system, %s", cli.Count(p.Left.Consumers, "consumer"), p.Left.System, cli.Count(p.Left.StoragePlugins, "storage plugin"))
	if p.Ignored > 0 {
		text += fmt.Sprintf("; %d left by request", p.Ignored)
	}
	return text
}

// reasonTable counts allocations by reason, in the order in which reasons are tried.
func reasonTable(r *wire.NodeDrain) *cli.Table {
	t := cli.NewTable("Count", "Reason")
	for reason := range rules.ReasonCount {
		if n := r.Progress.Waiting[reason.String()]; n > 0 {
			t.Row(fmt.Sprint(n), reason.String())
		}
	}
	return t
}

func leftTable(allocs []wire.DrainAlloc, verbose bool) *cli.Table {
	t := cli.NewTable("ID", cli.If(verbose, "Namespace"), "Job", "Task Group", cli.If(verbose, "Stage"), "Reason", "Since", "Due", cli.If(verbose, "Waits For"), "Detail")
	for _, a := range allocs {
		t.Row(cli.ShortID(a.ID, verbose), a.Namespace, a.JobID, a.TaskGroup, a.Stage, a.Reason, sinceCell(a), cli.TimeCell(a.Due), waitsForCell(a), detailCell(a))
	}
	return t
}

// cause is what causes the reason of allocations, with the command that shows more.
type cause struct {
	reason, text, see string
	// first is the first of the allocations, and more counts the others.
	first string
	more  int
}

// causesOf returns the causes, in the order of the first allocations. Allocations that are the cause
// themselves have one for each reason.
func causesOf(allocs []wire.DrainAlloc) (causes []cause) {
	for _, a := range allocs {
		if a.Cause == "" && a.See == "" {
			continue
		}
		i := slices.IndexFunc(causes, func(c cause) bool { return c.reason == a.Reason && c.text == a.Cause })
		if i >= 0 {
			causes[i].more++
			continue
		}
		causes = append(causes, cause{reason: a.Reason, text: a.Cause, see: a.See, first: a.ID})
	}
	return causes
}

// printCauses prints what causes the reasons, in lines that fit into 80 columns unless names are long.
func printCauses(out io.Writer, allocs []wire.DrainAlloc, verbose bool) {
	causes := causesOf(allocs)
	if len(causes) == 0 {
		return
	}
	fmt.Fprintln(out, "\nCauses")
	for _, cause := range causes {
		head, text, see := cli.ShortID(cause.first, verbose), cli.LocalTimes(cause.text), cause.see
		if cause.more > 0 {
			head += fmt.Sprintf(" and %d more", cause.more)
		}
		if !verbose {
			text, see = cli.ShortIDs(text), cli.ShortIDs(see)
		}
		fmt.Fprintf(out, "%s: %s\n", head, cause.reason)
		if text != "" {
			fmt.Fprintf(out, "  %s\n", cli.SingleLine(text))
		}
		if see != "" {
			fmt.Fprintf(out, "  see: %s\n", cli.SingleLine(see))
		}
	}
}

func sinceCell(a wire.DrainAlloc) string {
	if a.SinceSeen && !a.Since.IsZero() {
		return "seen " + cli.Clock(a.Since)
	}
	return cli.TimeCell(a.Since)
}

// detailCell is the detail of a reason, and what each task waits for. The reason has named the volumes that
// a storage plugin waits for, so its tasks have only the time.
func detailCell(a wire.DrainAlloc) string {
	parts := []string{cli.LocalTimes(a.Detail)}
	for _, task := range slices.Sorted(maps.Keys(a.Waiting)) {
		w := *a.Waiting[task]
		if a.Reason == rules.ReasonHeldForVolumes.String() {
			w.Detail = ""
		}
		parts = append(parts, fmt.Sprintf("task %q waits for %s", task, cli.WaitText(&w, time.Now())))
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
