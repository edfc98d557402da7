package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// drainListCommand is "nodedrain drain list".
type drainListCommand struct{ operatorCommand }

// drainListFlags are its flags.
type drainListFlags struct {
	connectFlags
	outputFlags
	verbose bool
	recent  int
}

// defaultRecent is the default number of ended drains listed. Servers keep thousands.
const defaultRecent = 20

func (f *drainListFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("drain list", flag.ContinueOnError)
	f.connectFlags.set(set)
	f.outputFlags.set(set)
	set.BoolVar(&f.verbose, "verbose", false, "")
	set.IntVar(&f.recent, "recent", defaultRecent, "")
	return set
}

func (c *drainListCommand) Synopsis() string { return "List running and ended drains" }

func (c *drainListCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain drain list [options]

  Lists running drains and ended drains. For a running drain it shows the number of
  allocations left, the reason of the allocation that needs help most, and the latest time
  at which the drain ends. Ended drains are listed newest first, including those of
  deleted nodes.

Options:

  -recent N         Maximum number of ended drains to list; 0 lists all. Default: %d.
  -verbose          Show whole ids, and the id, user and metadata of each drain.
`, defaultRecent) + outputHelp + "\n" + connectHelp)
}

func (c *drainListCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *drainListCommand) run(args []string) error {
	var f drainListFlags
	about, err := arguments(f.set(), "drain list", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return misused("drain list", "This command takes no arguments")
	case f.recent < 0:
		return misused("drain list", fmt.Sprintf("-recent is %d and must not be below 0", f.recent))
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	drains, _, err := asked.Drains(c.ctx, client.Query{})
	switch {
	case err != nil:
		return saidf("Error querying drains: %v", err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, drains)
	}
	c.list(drains, &f)
	return nil
}

func (c *drainListCommand) list(drains *wire.DrainList, f *drainListFlags) {
	if len(drains.Active) == 0 {
		fmt.Fprintln(c.out, "No drain runs")
	} else {
		fmt.Fprintln(c.out, "Active")
		activeTable(drains.Active, f.verbose).write(c.out)
	}
	recent := drains.Recent
	if f.recent > 0 && len(recent) > f.recent {
		recent = recent[:f.recent]
	}
	if len(recent) == 0 {
		return
	}
	fmt.Fprintln(c.out, "\nRecent")
	recentTable(recent, f.verbose).write(c.out)
	if more := len(drains.Recent) - len(recent); more > 0 {
		fmt.Fprintf(c.out, "and %d more; -recent 0 lists all\n", more)
	}
}

func activeTable(drains []wire.ActiveDrain, verbose bool) *table {
	columns := []string{"Node", "Name", "Started", "Limit", "Left", "Reason", "Ends By"}
	if verbose {
		columns = append(columns, "Drain", "By", "Meta")
	}
	t := newTable(columns...)
	for _, a := range drains {
		left, reason, endsBy := "unknown", "unknown", "unknown"
		if p := a.Progress; p != nil {
			left = fmt.Sprint(p.Left.Consumers + p.Left.System + p.Left.StoragePlugins)
			reason, endsBy = p.Reason, timeCell(p.EndsBy)
		}
		d := a.Drain
		cells := []string{
			shortID(d.NodeID, verbose), d.NodeName, clock(d.Strategy.StartedAt), limitText(d.Strategy), left, reason, endsBy,
		}
		if verbose {
			cells = append(cells, d.ID, d.UpdatedBy, pairsText(d.Meta))
		}
		t.row(cells...)
	}
	return t
}

func recentTable(drains []*wire.Drain, verbose bool) *table {
	columns := []string{"Node", "Name", "Started", "Ended", "Outcome"}
	if verbose {
		columns = append(columns, "Drain", "By", "Meta")
	}
	t := newTable(columns...)
	for _, d := range drains {
		cells := []string{shortID(d.NodeID, verbose), d.NodeName, clock(d.Strategy.StartedAt), timeCell(d.EndedAt), outcomeCell(d)}
		if verbose {
			cells = append(cells, d.ID, d.UpdatedBy, pairsText(d.Meta))
		}
		t.row(cells...)
	}
	return t
}

// outcomeCell returns a drain's outcome, and how many allocations still stopped and how many volumes were
// left.
func outcomeCell(d *wire.Drain) string {
	text := d.Outcome
	if d.StillStopping > 0 {
		text += fmt.Sprintf("; %d still stopping", d.StillStopping)
	}
	if left := volumesLeft(d); left > 0 {
		text += fmt.Sprintf("; %s left on the node", counted(left, "volume"))
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

const drainHelp = `Usage: nodedrain drain <command> [options]

  Shows which drains run and how ended drains ended.`

// AutocompleteArgs completes nothing: the command takes no argument.
func (c *drainListCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *drainListCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(drainListFlags).set())
}
