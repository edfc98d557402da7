package drain

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// ListCommand is "nodedrain drain list".
type ListCommand struct{ cli.Base }

// ListFlags are its flags.
type ListFlags struct {
	cli.ConnectFlags
	cli.OutputFlags
	verbose bool
	recent  int
}

// defaultRecent is the default number of ended drains listed. Servers keep thousands.
const defaultRecent = 20

func (f *ListFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("drain list", flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	f.OutputFlags.Set(set)
	set.BoolVar(&f.verbose, "verbose", false, "")
	set.IntVar(&f.recent, "recent", defaultRecent, "")
	return set
}

func (c *ListCommand) Synopsis() string { return "List running and ended drains" }

func (c *ListCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain drain list [options]

  Lists running drains and ended drains. For a running drain it shows the number of
  allocations left, the reason of the allocation that needs help most, and the latest time
  at which the drain ends. Ended drains are listed newest first, including those of
  deleted nodes.

Options:

  -recent N         Maximum number of ended drains to list; 0 lists all. Default: %d.
  -verbose          Show whole ids, and the id, user and metadata of each drain.
`, defaultRecent) + cli.OutputHelp + "\n" + cli.ConnectHelp)
}

func (c *ListCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *ListCommand) run(args []string) error {
	var f ListFlags
	about, err := cli.ParseArguments(f.Set(), "drain list", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return cli.UsageError("drain list", "This command takes no arguments")
	case f.recent < 0:
		return cli.UsageError("drain list", fmt.Sprintf("-recent is %d and must not be below 0", f.recent))
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	drains, _, err := asked.Drains(c.Ctx, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying drains: %v", err)
	case f.Raw():
		return cli.PrintRaw(&f.OutputFlags, c.Out, drains)
	}
	c.list(drains, &f)
	return nil
}

func (c *ListCommand) list(drains *wire.DrainList, f *ListFlags) {
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

const Help = `Usage: nodedrain drain <command> [options]

  Shows which drains run and how ended drains ended.`

// AutocompleteArgs completes nothing: the command takes no argument.
func (c *ListCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *ListCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(ListFlags).Set())
}
