package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"
)

// jobStopCommand is "nodedrain job stop".
type jobStopCommand struct{ operatorCommand }

// jobStopFlags are its flags.
type jobStopFlags struct {
	connectFlags
	purge, yes bool
}

func (f *jobStopFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("job stop", flag.ContinueOnError)
	f.connectFlags.set(set)
	set.BoolVar(&f.purge, "purge", false, "")
	set.BoolVar(&f.yes, "yes", false, "")
	return set
}

func (c *jobStopCommand) Synopsis() string { return "Stop a job" }

func (c *jobStopCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain job stop [options] JOB

  Stops a job: its allocations stop and get no replacement. JOB is the job's id or a
  prefix of it.

Options:

  -purge            Delete the job, its allocations and its evaluations.
  -yes              Do not ask for confirmation when JOB is a prefix.
` + connectHelp)
}

func (c *jobStopCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *jobStopCommand) run(args []string) error {
	var f jobStopFlags
	about, err := arguments(f.set(), "job stop", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return misused("job stop", "This command takes one argument: <job>")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	job, err := jobs(&c.operatorCommand, asked).find(about[0])
	if err != nil {
		return err
	}
	if job.ID != about[0] && !f.yes {
		if err := c.confirmedAs(fmt.Sprintf("Are you sure you want to stop job %q? [y/N]", job.ID), "Cancelling job stop"); err != nil {
			return err
		}
	}
	written, _, err := asked.StopJob(c.ctx, job.ID, f.purge)
	if err != nil {
		return saidf("Error deregistering job: %v", err)
	}
	if f.purge {
		fmt.Fprintf(c.out, "Job %q deleted\n", job.ID)
		return nil
	}
	fmt.Fprintf(c.out, "Job %q stopped: evaluation %s\n", job.ID, written.EvalID)
	return nil
}

// AutocompleteArgs completes the job.
func (c *jobStopCommand) AutocompleteArgs() complete.Predictor { return c.ids("jobs") }

// AutocompleteFlags completes the flags.
func (c *jobStopCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(jobStopFlags).set())
}
