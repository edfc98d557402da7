package operator

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// SystemHelp is the help of "nodedrain system".
const SystemHelp = `
  Maintains the state that the servers keep.`

// SystemGC is "nodedrain system gc".
func SystemGC() *cli.Command {
	return &cli.Command{
		Short: "Delete ended work that nothing needs",
		Description: `
  Deletes ended allocations, closed evaluations, stopped jobs and finished batch jobs that
  nothing needs, of every age. The leader does this itself when they are old. Rows that a
  running drain, the scheduler or a client still needs stay.
`,
		Connects: true,
		Run: func(c *cli.Call) error {
			deleted, err := client.Collect(c.Ctx, c.API)
			if err != nil {
				return cli.Errorf("Error running system garbage-collection: %v", err)
			}
			fmt.Fprintf(c.Out, "Deleted %s, %s and %s\n", cli.Count(deleted.Allocations, "allocation"), cli.Count(deleted.Evaluations, "evaluation"), cli.Count(deleted.Jobs, "job"))
			return nil
		},
	}
}
