package alloc

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
)

// StopCommand is "nodedrain alloc stop".
type StopCommand struct{ cli.Base }

// StopFlags are its flags.
type StopFlags struct {
	cli.ConnectFlags
	detach bool
}

func (f *StopFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("alloc stop", flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	set.BoolVar(&f.detach, "detach", false, "")
	return set
}

func (c *StopCommand) Synopsis() string { return "Stop an allocation and place another" }

func (c *StopCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc stop [options] ALLOC

  Stops an allocation, and waits until the scheduler has evaluated its job. The scheduler
  places a replacement. ALLOC is the allocation's id or a prefix of it. To stop a whole
  job use "job stop".

Options:

  -detach           Do not wait for the scheduler.
`+cli.ConnectHelp) + `

Exit code:

  0   The allocation stops. Without -detach: every allocation of the job is placed.
  1   The request failed.
  2   Some allocations cannot be placed. The command prints the reasons.
`
}

func (c *StopCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *StopCommand) run(args []string) error {
	var f StopFlags
	about, err := cli.ParseArguments(f.Set(), "alloc stop", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return cli.UsageError("alloc stop", "This command takes one argument: <alloc>")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.Base, asked, about[0])
	if err != nil {
		return err
	}
	stopped, err := asked.Alloc(a.ID).Stop(c.Ctx)
	if err != nil {
		return cli.Errorf("Error stopping allocation: %v", err)
	}
	fmt.Fprintf(c.Out, "Allocation %q stops: evaluation %s\n", cli.ShortID(a.ID, false), stopped.EvalID)
	if f.detach || stopped.EvalID == "" {
		return nil
	}
	_, err = eval.Evaluated(&c.Base, asked, stopped.EvalID, "The allocation stops")
	return err
}

// AutocompleteArgs completes the allocation.
func (c *StopCommand) AutocompleteArgs() complete.Predictor { return c.Ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *StopCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(StopFlags).Set())
}
