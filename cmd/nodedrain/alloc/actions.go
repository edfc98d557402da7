package alloc

import (
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Restart is "nodedrain alloc restart".
func Restart() *cli.Command {
	var task taskFlag
	var all bool
	return &cli.Command{
		Short: "Restart tasks of an allocation",
		Description: `
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

// Signal is "nodedrain alloc signal".
func Signal() *cli.Command {
	var task taskFlag
	name := "SIGKILL"
	return &cli.Command{
		Short: "Send a signal to tasks of an allocation",
		Description: `
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

// Stop is "nodedrain alloc stop".
func Stop() *cli.Command {
	var detach bool
	return &cli.Command{
		Short: "Stop an allocation and place another",
		Description: `
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
