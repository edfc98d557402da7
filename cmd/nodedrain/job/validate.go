package job

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// Validate is "nodedrain job validate".
func Validate() *cli.Command {
	return &cli.Command{
		Short: "Check a job file",
		Description: `
  Checks whether the servers would register the job in FILE, and prints what they would
  ignore. It changes nothing. FILE is as for "job run".
`,
		Exits: `
  0  The servers would register the job.
  1  They would refuse it, or the request failed.
`,
		Args: "FILE", Connects: true,
		Run: func(c *cli.Call) error {
			body, err := jobBody(c, c.Args[0])
			if err != nil {
				return err
			}
			answer, _, err := c.API.JobFile(body).Validate(c.Ctx)
			if err != nil {
				return cli.Errorf("Error validating job: %v", err)
			}
			c.Warn(answer.Warnings)
			if answer.Error != "" {
				return cli.Errorf("The servers would refuse the job: %s", answer.Error)
			}
			fmt.Fprintln(c.Out, "The servers would register the job")
			return nil
		},
	}
}
