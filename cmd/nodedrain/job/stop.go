package job

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// Stop is "nodedrain job stop".
func Stop() *cli.Command {
	var yes, detach bool
	var how cluster.JobStop
	return &cli.Command{
		Short: "Stop a job",
		Description: `
  Stops a job: its allocations stop and get no replacement. JOB is the job's id or a
  prefix of it. The command prints the evaluation and does not wait for it: see "eval
  status". With -purge the job is deleted at once, and allocations that run stop.
`,
		Args: "JOB", Connects: true,
		Options: cli.Options{
			cli.Flag(&how.Purge, "purge", "Delete the job, and its evaluations and ended allocations."),
			cli.Flag(&how.EvalPriority, "eval-priority N", "The priority of the evaluation, 1 to 100. Default: that of the job."),
			cli.Flag(&detach, "detach", "Accepted for compatibility: the command never waits for the scheduler."),
			cli.Flag(&yes, "yes", "Skip the confirmation when JOB is a prefix."),
		},
		Run: func(c *cli.Call) error {
			job, err := jobs(c).Find(c, c.Args[0])
			if err != nil {
				return err
			}
			if job.ID != c.Args[0] && !yes {
				if err := c.Confirm(fmt.Sprintf("Are you sure you want to stop job %q? [y/N]", job.ID), "Cancelling job stop"); err != nil {
					return err
				}
			}
			written, _, err := c.API.StopJob(c.Ctx, job.ID, how)
			switch {
			case err != nil:
				return cli.Errorf("Error deregistering job: %v", err)
			case how.Purge:
				fmt.Fprintf(c.Out, "Job %q deleted\n", job.ID)
			default:
				fmt.Fprintf(c.Out, "Job %q stopped: evaluation %s\n", job.ID, written.EvalID)
			}
			return nil
		},
	}
}
