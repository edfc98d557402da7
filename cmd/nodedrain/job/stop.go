package job

import (
	"flag"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// Stop is "nodedrain job stop".
func Stop() *cli.Command {
	var f stopFlags
	return &cli.Command{
		Short: "Stop a job",
		Help: `
Usage: nodedrain job stop [options] JOB

  Stops a job: its allocations stop and get no replacement. JOB is the job's id or a
  prefix of it.

Options:

  -purge            Delete the job, its allocations and its evaluations.
  -yes              Do not ask for confirmation when JOB is a prefix.
`,
		Connects: true, Flags: f.set,
		Args: cli.Arguments{Least: 1, Most: 1, Usage: "This command takes one argument: <job>", Complete: cli.IDs("jobs")},
		Run:  func(c *cli.Call) error { return (&stopCommand{c}).run(&f) },
	}
}

type stopCommand struct{ *cli.Call }

// stopFlags are its flags.
type stopFlags struct {
	purge, yes bool
}

func (f *stopFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.purge, "purge", false, "")
	set.BoolVar(&f.yes, "yes", false, "")
}

func (c *stopCommand) run(f *stopFlags) error {
	api := c.API
	job, err := jobs(&c.Base, api).Find(c.Args[0])
	if err != nil {
		return err
	}
	if job.ID != c.Args[0] && !f.yes {
		if err := c.ConfirmAs(fmt.Sprintf("Are you sure you want to stop job %q? [y/N]", job.ID), "Cancelling job stop"); err != nil {
			return err
		}
	}
	written, _, err := api.StopJob(c.Ctx, job.ID, f.purge)
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
