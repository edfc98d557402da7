package alloc

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
)

// Stop is "nodedrain alloc stop".
func Stop() *cli.Command {
	var detach bool
	return &cli.Command{
		Short: "Stop an allocation and place another",
		About: `
  Stops an allocation, and waits until the scheduler has evaluated its job. The scheduler
  places a replacement. ALLOC is the allocation's id or a prefix of it. To stop a whole
  job use "job stop".
`,
		Exits: `
  0   The allocation stops. Without -detach: every allocation of the job is placed.
  1   The request failed.
  2   Some allocations cannot be placed. The command prints the reasons.
`,
		Args: "ALLOC", Connects: true,
		Options: cli.Options{cli.Flag(&detach, "detach", "Do not wait for the scheduler.")},
		Run: func(c *cli.Call) error {
			stub, err := allocs(c, false).Find(c, c.Args[0])
			if err != nil {
				return err
			}
			stopped, err := c.API.Alloc(stub.ID).Stop(c.Ctx)
			if err != nil {
				return cli.Errorf("Error stopping allocation: %v", err)
			}
			fmt.Fprintf(c.Out, "Allocation %q stops: evaluation %s\n", cli.ShortID(stub.ID, false), stopped.EvalID)
			if detach || stopped.EvalID == "" {
				return nil
			}
			_, err = eval.Evaluated(c, stopped.EvalID, "The allocation stops")
			return err
		},
	}
}
