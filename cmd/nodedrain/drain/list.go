package drain

import (
	"flag"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// List is "nodedrain drain list".
func List() *cli.Command {
	var f listFlags
	return &cli.Command{
		Short: "List running and ended drains",
		Help: fmt.Sprintf(`
Usage: nodedrain drain list [options]

  Lists running drains and ended drains. For a running drain it shows the number of
  allocations left, the reason of the allocation that needs help most, and the latest time
  at which the drain ends. Ended drains are listed newest first, including those of
  deleted nodes.

Options:

  -recent N         Maximum number of ended drains to list; 0 lists all. Default: %d.
  -verbose          Show whole ids, and the id, user and metadata of each drain.
`, defaultRecent),
		Connects: true, Formats: true, Flags: f.set,
		Run: func(c *cli.Call) error { return (&listCommand{c}).run(&f) },
	}
}

type listCommand struct{ *cli.Call }

// listFlags are its flags.
type listFlags struct {
	verbose bool
	recent  int
}

// defaultRecent is the default number of ended drains listed. Servers keep thousands.
const defaultRecent = 20

func (f *listFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.verbose, "verbose", false, "")
	set.IntVar(&f.recent, "recent", defaultRecent, "")
}

func (c *listCommand) run(f *listFlags) error {
	if f.recent < 0 {
		return c.UsageError(fmt.Sprintf("-recent is %d and must not be below 0", f.recent))
	}
	api := c.API
	drains, _, err := api.Drains(c.Ctx, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying drains: %v", err)
	case c.Raw():
		return c.PrintRaw(drains)
	}
	c.list(drains, f)
	return nil
}

func (c *listCommand) list(drains *wire.DrainList, f *listFlags) {
	if len(drains.Active) == 0 {
		fmt.Fprintln(c.Out, "No drain runs")
	} else {
		fmt.Fprintln(c.Out, "Active")
		activeTable(drains.Active, f.verbose).Write(c.Out)
	}
	recent := drains.Recent
	if f.recent > 0 && len(recent) > f.recent {
		recent = recent[:f.recent]
	}
	if len(recent) == 0 {
		return
	}
	fmt.Fprintln(c.Out, "\nRecent")
	recentTable(recent, f.verbose).Write(c.Out)
	if more := len(drains.Recent) - len(recent); more > 0 {
		fmt.Fprintf(c.Out, "and %d more; -recent 0 lists all\n", more)
	}
}

func activeTable(drains []wire.ActiveDrain, verbose bool) *cli.Table {
	columns := []string{"Node", "Name", "Started", "Limit", "Left", "Reason", "Ends By"}
	if verbose {
		columns = append(columns, "Drain", "By", "Meta")
	}
	t := cli.NewTable(columns...)
	for _, a := range drains {
		left, reason, endsBy := "unknown", "unknown", "unknown"
		if p := a.Progress; p != nil {
			left = fmt.Sprint(p.Left.Consumers + p.Left.System + p.Left.StoragePlugins)
			reason, endsBy = p.Reason, cli.TimeCell(p.EndsBy)
		}
		d := a.Drain
		cells := []string{
			cli.ShortID(d.NodeID, verbose), d.NodeName, cli.Clock(d.Strategy.StartedAt), cli.LimitText(d.Strategy), left, reason, endsBy,
		}
		if verbose {
			cells = append(cells, d.ID, d.UpdatedBy, cli.PairsText(d.Meta))
		}
		t.Row(cells...)
	}
	return t
}

func recentTable(drains []*wire.Drain, verbose bool) *cli.Table {
	columns := []string{"Node", "Name", "Started", "Ended", "Outcome"}
	if verbose {
		columns = append(columns, "Drain", "By", "Meta")
	}
	t := cli.NewTable(columns...)
	for _, d := range drains {
		cells := []string{cli.ShortID(d.NodeID, verbose), d.NodeName, cli.Clock(d.Strategy.StartedAt), cli.TimeCell(d.EndedAt), OutcomeCell(d)}
		if verbose {
			cells = append(cells, d.ID, d.UpdatedBy, cli.PairsText(d.Meta))
		}
		t.Row(cells...)
	}
	return t
}

// OutcomeCell returns a drain's outcome, and how many allocations still stopped and how many volumes were
// left.
func OutcomeCell(d *wire.Drain) string {
	text := d.Outcome
	if d.StillStopping > 0 {
		text += fmt.Sprintf("; %d still stopping", d.StillStopping)
	}
	if left := volumesLeft(d); left > 0 {
		text += fmt.Sprintf("; %s left on the node", cli.Count(left, "volume"))
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

// Help is the help of the parent command.
const Help = `Usage: nodedrain drain <command> [options]

  Shows which drains run and how ended drains ended.`
