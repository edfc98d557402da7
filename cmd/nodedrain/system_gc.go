package main

import (
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// systemGCCommand is "nodedrain system gc".
type systemGCCommand struct{ operatorCommand }

func (c *systemGCCommand) Synopsis() string { return "Delete ended work that nothing needs" }

func (c *systemGCCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain system gc [options]

  Deletes ended allocations, closed evaluations, stopped jobs and finished batch jobs that
  nothing needs, of every age. The leader does this itself when they are old. Rows that a
  running drain, the scheduler or a client still needs stay.

Options:

` + connectHelp)
}

func (c *systemGCCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *systemGCCommand) run(args []string) error {
	var f connectFlags
	about, err := arguments(f.flags("system gc"), "system gc", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return misused("system gc", "This command takes no arguments")
	}
	asked, err := c.connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	deleted, err := client.Collect(c.ctx, asked)
	if err != nil {
		return saidf("Error running system garbage-collection: %v", err)
	}
	fmt.Fprintf(c.out, "Deleted %s, %s and %s\n", counted(deleted.Allocations, "allocation"), counted(deleted.Evaluations, "evaluation"), counted(deleted.Jobs, "job"))
	return nil
}

// AutocompleteArgs completes nothing.
func (c *systemGCCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *systemGCCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(connectFlags).flags("system gc"))
}

const systemHelp = `Usage: nodedrain system <command> [options]

  Maintains the state that the servers keep.`
