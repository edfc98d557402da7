package alloc

import (
	"flag"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Restart is "nodedrain alloc restart".
func Restart() *cli.Command {
	var f restartFlags
	return &cli.Command{
		Short: "Restart tasks of an allocation",
		Help: `
Usage: nodedrain alloc restart [options] ALLOC [TASK]

  Restarts a task on its node, or without TASK every running task of the allocation. ALLOC
  is the allocation's id or a prefix of it.

Options:

  -all-tasks        Also restart ended tasks, in the order of a first start.
  -task TASK        The task, instead of the second argument.
`,
		Connects: true, Flags: f.set,
		Args: taskArguments(),
		Run:  func(c *cli.Call) error { return (&restartCommand{c}).run(&f) },
	}
}

type restartCommand struct{ *cli.Call }

// restartFlags are its flags.
type restartFlags struct {
	taskFlags
	all bool
}

func (f *restartFlags) set(set *flag.FlagSet) {
	f.taskFlags.set(set)
	set.BoolVar(&f.all, "all-tasks", false, "")
}

func (c *restartCommand) run(f *restartFlags) error {
	given, err := f.alloc(c.Call)
	switch {
	case err != nil:
		return err
	case f.all && f.task != "":
		return c.UsageError("-all-tasks and a task are mutually exclusive")
	}
	api := c.API
	a, err := alloc(&c.Base, api, given)
	if err != nil {
		return err
	}
	what := tasksText(a, f.task)
	if f.task != "" {
		if _, err := taskOf(a, f.task); err != nil {
			return err
		}
	}
	if f.all {
		what = fmt.Sprintf("all tasks of allocation %q", cli.ShortID(a.ID, false))
	}
	if err := api.Alloc(a.ID).Restart(c.Ctx, wire.RestartRequest{TaskName: f.task, AllTasks: f.all}); err != nil {
		return cli.Errorf("Failed to restart allocation: %v", err)
	}
	fmt.Fprintf(c.Out, "Restart requested for %s\n", what)
	return nil
}
