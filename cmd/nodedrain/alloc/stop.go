package alloc

import (
	"flag"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
)

// Stop is "nodedrain alloc stop".
func Stop() *cli.Command {
	var f stopFlags
	return &cli.Command{
		Short: "Stop an allocation and place another",
		Help: `
Usage: nodedrain alloc stop [options] ALLOC

  Stops an allocation, and waits until the scheduler has evaluated its job. The scheduler
  places a replacement. ALLOC is the allocation's id or a prefix of it. To stop a whole
  job use "job stop".

Options:

  -detach           Do not wait for the scheduler.
`,
		Exits: `

Exit code:

  0   The allocation stops. Without -detach: every allocation of the job is placed.
  1   The request failed.
  2   Some allocations cannot be placed. The command prints the reasons.
`,
		Connects: true, Flags: f.set,
		Args: cli.Arguments{Least: 1, Most: 1, Usage: "This command takes one argument: <alloc>", Complete: cli.IDs("allocs")},
		Run:  func(c *cli.Call) error { return (&stopCommand{c}).run(&f) },
	}
}

type stopCommand struct{ *cli.Call }

// stopFlags are its flags.
type stopFlags struct {
	detach bool
}

func (f *stopFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.detach, "detach", false, "")
}

func (c *stopCommand) run(f *stopFlags) error {
	api := c.API
	a, err := alloc(&c.Base, api, c.Args[0])
	if err != nil {
		return err
	}
	stopped, err := api.Alloc(a.ID).Stop(c.Ctx)
	if err != nil {
		return cli.Errorf("Error stopping allocation: %v", err)
	}
	fmt.Fprintf(c.Out, "Allocation %q stops: evaluation %s\n", cli.ShortID(a.ID, false), stopped.EvalID)
	if f.detach || stopped.EvalID == "" {
		return nil
	}
	_, err = eval.Evaluated(&c.Base, api, stopped.EvalID, "The allocation stops")
	return err
}
