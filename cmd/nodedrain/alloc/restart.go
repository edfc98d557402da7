package alloc

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Restart is "nodedrain alloc restart".
func Restart() *cli.Command {
	var task taskFlag
	var all bool
	return &cli.Command{
		Short: "Restart tasks of an allocation",
		About: `
  Restarts a task on its node, or without TASK every running task of the allocation. ALLOC
  is the allocation's id or a prefix of it.
`,
		Args: "ALLOC [TASK]", Connects: true,
		Options: cli.Options{
			cli.Flag(&all, "all-tasks", "Also restart ended tasks, in the order of a first start."),
			task.option(),
		},
		Run: func(c *cli.Call) error {
			if err := task.resolve(c); err != nil {
				return err
			}
			if all && task != "" {
				return c.UsageError("-all-tasks and a task are mutually exclusive")
			}
			a, tasks, err := task.alloc(c)
			if err != nil {
				return err
			}
			if all {
				tasks = fmt.Sprintf("all tasks of allocation %q", cli.ShortID(a.ID, false))
			}
			if err := c.API.Alloc(a.ID).Restart(c.Ctx, wire.RestartRequest{TaskName: string(task), AllTasks: all}); err != nil {
				return cli.Errorf("Failed to restart allocation: %v", err)
			}
			fmt.Fprintf(c.Out, "Restart requested for %s\n", tasks)
			return nil
		},
	}
}
