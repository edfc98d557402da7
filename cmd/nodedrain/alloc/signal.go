package alloc

import (
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Signal is "nodedrain alloc signal".
func Signal() *cli.Command {
	var task taskFlag
	name := "SIGKILL"
	return &cli.Command{
		Short: "Send a signal to tasks of an allocation",
		About: `
  Sends a signal to a task, or without TASK to every running task of the allocation.
  ALLOC is the allocation's id or a prefix of it.
`,
		Args: "ALLOC [TASK]", Connects: true,
		Options: cli.Options{
			cli.Flag(&name, "s SIGNAL", "The name of the signal, such as HUP or SIGHUP."),
			task.option(),
		},
		FlagValues: complete.Flags{"-s": complete.PredictSet("SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM", "SIGUSR1", "SIGUSR2")},
		Run: func(c *cli.Call) error {
			if err := task.resolve(c); err != nil {
				return err
			}
			name = strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(name)), "SIG")
			if name == "" {
				return c.UsageError("The signal must have a name")
			}
			a, tasks, err := task.alloc(c)
			if err != nil {
				return err
			}
			if err := c.API.Alloc(a.ID).Signal(c.Ctx, wire.SignalRequest{Task: string(task), Signal: "SIG" + name}); err != nil {
				return cli.Errorf("Error signalling allocation: %v", err)
			}
			fmt.Fprintf(c.Out, "Signal SIG%s sent to %s\n", name, tasks)
			return nil
		},
	}
}
