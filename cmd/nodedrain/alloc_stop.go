package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"
)

// allocStopCommand is "nodedrain alloc stop".
type allocStopCommand struct{ operatorCommand }

// allocStopFlags are its flags.
type allocStopFlags struct {
	connectFlags
	detach bool
}

func (f *allocStopFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("alloc stop", flag.ContinueOnError)
	f.connectFlags.set(set)
	set.BoolVar(&f.detach, "detach", false, "")
	return set
}

func (c *allocStopCommand) Synopsis() string { return "Stop an allocation and place another" }

func (c *allocStopCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc stop [options] ALLOC

  Stops an allocation, and waits until the scheduler has evaluated its job. The scheduler
  places a replacement. ALLOC is the allocation's id or a prefix of it. To stop a whole
  job use "job stop".

Options:

  -detach           Do not wait for the scheduler.
`+connectHelp) + `

Exit code:

  0   The allocation stops. Without -detach: every allocation of the job is placed.
  1   The request failed.
  2   Some allocations cannot be placed. The command prints the reasons.
`
}

func (c *allocStopCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *allocStopCommand) run(args []string) error {
	var f allocStopFlags
	about, err := arguments(f.set(), "alloc stop", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return misused("alloc stop", "This command takes one argument: <alloc>")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.operatorCommand, asked, about[0])
	if err != nil {
		return err
	}
	stopped, err := asked.Alloc(a.ID).Stop(c.ctx)
	if err != nil {
		return saidf("Error stopping allocation: %v", err)
	}
	fmt.Fprintf(c.out, "Allocation %q stops: evaluation %s\n", shortID(a.ID, false), stopped.EvalID)
	if f.detach || stopped.EvalID == "" {
		return nil
	}
	_, err = evaluated(&c.operatorCommand, asked, stopped.EvalID, "The allocation stops")
	return err
}

// AutocompleteArgs completes the allocation.
func (c *allocStopCommand) AutocompleteArgs() complete.Predictor { return c.ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *allocStopCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(allocStopFlags).set())
}
