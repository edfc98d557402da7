package operator

import (
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// SystemGCCommand is "nodedrain system gc".
type SystemGCCommand struct{ cli.Base }

func (c *SystemGCCommand) Synopsis() string { return "Delete ended work that nothing needs" }

func (c *SystemGCCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain system gc [options]

  Deletes ended allocations, closed evaluations, stopped jobs and finished batch jobs that
  nothing needs, of every age. The leader does this itself when they are old. Rows that a
  running drain, the scheduler or a client still needs stay.

Options:

` + cli.ConnectHelp)
}

func (c *SystemGCCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *SystemGCCommand) run(args []string) error {
	var f cli.ConnectFlags
	about, err := cli.ParseArguments(f.Flags("system gc"), "system gc", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return cli.UsageError("system gc", "This command takes no arguments")
	}
	asked, err := c.Connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	deleted, err := client.Collect(c.Ctx, asked)
	if err != nil {
		return cli.Errorf("Error running system garbage-collection: %v", err)
	}
	fmt.Fprintf(c.Out, "Deleted %s, %s and %s\n", cli.Count(deleted.Allocations, "allocation"), cli.Count(deleted.Evaluations, "evaluation"), cli.Count(deleted.Jobs, "job"))
	return nil
}

// AutocompleteArgs completes nothing.
func (c *SystemGCCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *SystemGCCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(cli.ConnectFlags).Flags("system gc"))
}

const SystemHelp = `Usage: nodedrain system <command> [options]

  Maintains the state that the servers keep.`
