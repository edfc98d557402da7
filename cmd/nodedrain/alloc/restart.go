package alloc

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// RestartCommand is "nodedrain alloc restart".
type RestartCommand struct{ cli.Base }

// RestartFlags are its flags.
type RestartFlags struct {
	taskFlags
	all bool
}

func (f *RestartFlags) Set() *flag.FlagSet {
	set := f.taskFlags.set("alloc restart")
	set.BoolVar(&f.all, "all-tasks", false, "")
	return set
}

func (c *RestartCommand) Synopsis() string { return "Restart tasks of an allocation" }

func (c *RestartCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc restart [options] ALLOC [TASK]

  Restarts a task on its node, or without TASK every running task of the allocation. ALLOC
  is the allocation's id or a prefix of it.

Options:

  -all-tasks        Also restart ended tasks, in the order of a first start.
  -task TASK        The task, instead of the second argument.
` + cli.ConnectHelp)
}

func (c *RestartCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *RestartCommand) run(args []string) error {
	var f RestartFlags
	about, err := cli.ParseArguments(f.Set(), "alloc restart", args)
	if err != nil {
		return err
	}
	given, err := f.about("alloc restart", about)
	switch {
	case err != nil:
		return err
	case f.all && f.task != "":
		return cli.UsageError("alloc restart", "-all-tasks and a task are mutually exclusive")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.Base, asked, given)
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
	if err := asked.Alloc(a.ID).Restart(c.Ctx, wire.RestartRequest{TaskName: f.task, AllTasks: f.all}); err != nil {
		return cli.Errorf("Failed to restart allocation: %v", err)
	}
	fmt.Fprintf(c.Out, "Restart requested for %s\n", what)
	return nil
}

// AutocompleteArgs completes the allocation.
func (c *RestartCommand) AutocompleteArgs() complete.Predictor { return c.Ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *RestartCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(RestartFlags).Set())
}
