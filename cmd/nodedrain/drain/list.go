package drain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Help is the help of the parent command.
const Help = `
  Shows what drains would do, which drains run, how ended drains ended and what happened
  in them, confirms that no task of an ended drain runs, and pauses all drains.`

// List is "nodedrain drain list".
func List() *cli.Command {
	f := listFlags{recent: 20} // servers keep thousands
	return &cli.Command{
		Short: "List running and ended drains",
		Description: `
  Lists running drains and ended drains. For a running drain it shows the number of
  allocations left, the reason of the allocation that needs help most, and the latest time
  at which the drain ends. Ended drains are listed newest first, including those of
  deleted nodes. The tasks of an unconfirmed allocation may still run: see
  "nodedrain drain confirm".
`,
		Connects: true, Formats: true, Run: f.run,
		Options: cli.Options{
			cli.Flag(&f.recent, "recent N", "Maximum number of ended drains to list; 0 lists all."),
			cli.Flag(&f.verbose, "verbose", "Show whole ids, and the id, user, metadata and confirmation of each drain."),
		},
	}
}

// listFlags are its flags.
type listFlags struct {
	verbose bool
	recent  int
}

func (f *listFlags) run(c *cli.Call) error {
	if f.recent < 0 {
		return c.UsageError(fmt.Sprintf("-recent is %d and must not be below 0", f.recent))
	}
	drains, _, err := c.API.Drains(c.Ctx, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying drains: %v", err)
	case c.Raw():
		return c.PrintRaw(drains)
	}
	printPauseOfAll(c)
	if len(drains.Active) == 0 {
		fmt.Fprintln(c.Out, "No drain runs")
	} else {
		fmt.Fprintln(c.Out, "Active")
		activeTable(drains.Active, f.verbose, time.Now()).Write(c.Out)
	}
	recent := drains.Recent
	if f.recent > 0 && len(recent) > f.recent {
		recent = recent[:f.recent]
	}
	c.SectionIfAny("Recent", recentTable(recent, f.verbose))
	if more := len(drains.Recent) - len(recent); more > 0 {
		fmt.Fprintf(c.Out, "and %d more; -recent 0 lists all\n", more)
	}
	return nil
}

func activeTable(drains []wire.ActiveDrain, verbose bool, now time.Time) *cli.Table {
	paused := slices.ContainsFunc(drains, func(a wire.ActiveDrain) bool { return a.Drain.PausedBy != "" })
	t := cli.NewTable("Node", "Name", "Started", "Limit", "Left", "Reason", cli.If(paused, "Paused Since"), "Time Left", "Ends By", cli.If(verbose, "Cause"), cli.If(verbose, "See"),
		cli.If(verbose, "Drain"), cli.If(verbose, "By"), cli.If(verbose, "Meta"))
	for _, a := range drains {
		left, reason, timeLeft, endsBy, cause, see := "unknown", "unknown", "", "unknown", "", ""
		if p := a.Progress; p != nil {
			left = fmt.Sprint(p.Left.Consumers + p.Left.System + p.Left.StoragePlugins)
			reason, endsBy = p.Reason, cli.TimeCell(p.EndsBy)
			timeLeft = timeLeftCell(p, now)
			cause, see = cli.LocalTimes(p.Cause), p.See
		}
		d := a.Drain
		t.Row(cli.ShortID(d.NodeID, verbose), d.NodeName, cli.Clock(d.Strategy.StartedAt), cli.LimitText(d.Strategy), left, reason, pausedCell(d), cmp.Or(timeLeft, "-"), endsBy, cmp.Or(cause, "-"), cmp.Or(see, "-"),
			d.ID, cli.Author(d.UpdatedBy), cli.PairsText(d.Meta))
	}
	return t
}

func recentTable(drains []*wire.Drain, verbose bool) *cli.Table {
	t := cli.NewTable("Node", "Name", "Started", "Ended", "Outcome", "Drain", cli.If(verbose, "Confirmed"), cli.If(verbose, "Confirmed By"), cli.If(verbose, "Confirmed With"),
		cli.If(verbose, "By"), cli.If(verbose, "Meta"))
	for _, d := range drains {
		t.Row(cli.ShortID(d.NodeID, verbose), d.NodeName, cli.Clock(d.Strategy.StartedAt), cli.TimeCell(d.EndedAt), OutcomeCell(d), cli.ShortID(d.ID, verbose),
			cli.TimeCell(d.ConfirmedAt), cmp.Or(cli.Author(d.ConfirmedBy), "-"), cmp.Or(OtherConfirmationText(d), "-"), cli.Author(d.UpdatedBy), cli.PairsText(d.Meta))
	}
	return t
}

// OutcomeCell returns a drain's outcome, and how many allocations still stopped, how many are not confirmed,
// how many volumes were left and how many have data that was not copied. The outcome stays when all are confirmed.
func OutcomeCell(d *wire.Drain) string {
	text := outcomeWord(d)
	if d.StillStopping > 0 {
		text += fmt.Sprintf("; %d still stopping", d.StillStopping)
	}
	if d.Unconfirmed > 0 {
		text += "; " + cli.Count(d.Unconfirmed, "unconfirmed allocation")
	}
	text += confirmedText(d)
	if left := volumesLeft(d); left > 0 {
		text += fmt.Sprintf("; %s left on the node", cli.Count(left, "volume"))
	}
	if d.DataNotCopied != nil {
		text += fmt.Sprintf("; data of %s not copied", cli.Count(d.DataNotCopied.Count, "allocation"))
	}
	return text
}

// outcomeWord returns the outcome of an ended drain. With -drain-completion marked a drain can be complete although
// not all allocations had stopped at its end.
func outcomeWord(d *wire.Drain) string {
	if d.Outcome == string(cluster.OutcomeComplete) && (d.StillStopping > 0 || d.Unconfirmed > 0 || !d.ConfirmedAt.IsZero()) {
		return d.Outcome + " (all were marked, not all had stopped)"
	}
	return d.Outcome
}

// confirmedText returns whether the last unconfirmed allocation of a drain was confirmed, and what operators
// confirmed, or empty. The record does not separate the reports of clients from the time that passed.
func confirmedText(d *wire.Drain) (text string) {
	switch {
	case d.Unconfirmed > 0 || d.ConfirmedAt.IsZero():
	case d.ConfirmedBy != "":
		text = "; confirmed later by an operator"
	default:
		text = "; confirmed later"
	}
	if o := d.ConfirmedByOther; o != nil {
		text += fmt.Sprintf("; an operator confirmed %d with drain %s", o.Allocs, cli.ShortID(o.Drain, false))
	}
	return text
}

// OtherConfirmationText returns which confirmation of another drain confirmed allocations of a drain, or empty.
func OtherConfirmationText(d *wire.Drain) string {
	o := d.ConfirmedByOther
	if o == nil {
		return ""
	}
	text := fmt.Sprintf("%s with drain %s at %s", cli.Count(o.Allocs, "allocation"), o.Drain, cli.Clock(o.At))
	if by := cli.Author(o.By); by != "" {
		text += " by " + by
	}
	return text
}

// volumesLeft counts the volumes that a drain left on its node.
func volumesLeft(d *wire.Drain) int {
	if d.VolumesLeft == nil {
		return 0
	}
	return len(d.VolumesLeft.Volumes) + d.VolumesLeft.More
}
