package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// allocRestartCommand is "nodedrain alloc restart".
type allocRestartCommand struct{ operatorCommand }

// allocRestartFlags are its flags.
type allocRestartFlags struct {
	taskFlags
	all bool
}

func (f *allocRestartFlags) set() *flag.FlagSet {
	set := f.taskFlags.set("alloc restart")
	set.BoolVar(&f.all, "all-tasks", false, "")
	return set
}

func (c *allocRestartCommand) Synopsis() string { return "Restart tasks of an allocation" }

func (c *allocRestartCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc restart [options] ALLOC [TASK]

  Restarts a task on its node, or without TASK every running task of the allocation. ALLOC
  is the allocation's id or a prefix of it.

Options:

  -all-tasks        Also restart ended tasks, in the order of a first start.
  -task TASK        The task, instead of the second argument.
` + connectHelp)
}

func (c *allocRestartCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *allocRestartCommand) run(args []string) error {
	var f allocRestartFlags
	about, err := arguments(f.set(), "alloc restart", args)
	if err != nil {
		return err
	}
	given, err := f.about("alloc restart", about)
	switch {
	case err != nil:
		return err
	case f.all && f.task != "":
		return misused("alloc restart", "-all-tasks and a task are mutually exclusive")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.operatorCommand, asked, given)
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
		what = fmt.Sprintf("all tasks of allocation %q", shortID(a.ID, false))
	}
	if err := asked.Alloc(a.ID).Restart(c.ctx, wire.RestartRequest{TaskName: f.task, AllTasks: f.all}); err != nil {
		return saidf("Failed to restart allocation: %v", err)
	}
	fmt.Fprintf(c.out, "Restart requested for %s\n", what)
	return nil
}

// AutocompleteArgs completes the allocation.
func (c *allocRestartCommand) AutocompleteArgs() complete.Predictor { return c.ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *allocRestartCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(allocRestartFlags).set())
}
