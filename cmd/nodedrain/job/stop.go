package job

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// StopCommand is "nodedrain job stop".
type StopCommand struct{ cli.Base }

// StopFlags are its flags.
type StopFlags struct {
	cli.ConnectFlags
	purge, yes bool
}

func (f *StopFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("job stop", flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	set.BoolVar(&f.purge, "purge", false, "")
	set.BoolVar(&f.yes, "yes", false, "")
	return set
}

func (c *StopCommand) Synopsis() string { return "Stop a job" }

func (c *StopCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain job stop [options] JOB

  Stops a job: its allocations stop and get no replacement. JOB is the job's id or a
  prefix of it.

Options:

  -purge            Delete the job, its allocations and its evaluations.
  -yes              Do not ask for confirmation when JOB is a prefix.
` + cli.ConnectHelp)
}

func (c *StopCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *StopCommand) run(args []string) error {
	var f StopFlags
	about, err := cli.ParseArguments(f.Set(), "job stop", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return cli.UsageError("job stop", "This command takes one argument: <job>")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	job, err := jobs(&c.Base, asked).Find(about[0])
	if err != nil {
		return err
	}
	if job.ID != about[0] && !f.yes {
		if err := c.ConfirmAs(fmt.Sprintf("Are you sure you want to stop job %q? [y/N]", job.ID), "Cancelling job stop"); err != nil {
			return err
		}
	}
	written, _, err := asked.StopJob(c.Ctx, job.ID, f.purge)
	if err != nil {
		return cli.Errorf("Error deregistering job: %v", err)
	}
	if f.purge {
		fmt.Fprintf(c.Out, "Job %q deleted\n", job.ID)
		return nil
	}
	fmt.Fprintf(c.Out, "Job %q stopped: evaluation %s\n", job.ID, written.EvalID)
	return nil
}

// AutocompleteArgs completes the job.
func (c *StopCommand) AutocompleteArgs() complete.Predictor { return c.Ids("jobs") }

// AutocompleteFlags completes the flags.
func (c *StopCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(StopFlags).Set())
}
