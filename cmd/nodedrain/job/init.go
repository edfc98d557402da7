package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// exampleFile is where the example is written to.
const exampleFile = "example.json"

// Init is "nodedrain job init".
func Init() *cli.Command {
	return &cli.Command{
		Short: "Write an example of a job",
		About: `
  Writes an example of a job to FILE, by default example.json. The job is a service that
  prints a line each second. It needs a node whose driver raw_exec is enabled. Edit it,
  and run it with "nodedrain job run". The command contacts no server.
`,
		Args: "[FILE]",
		Run: func(c *cli.Call) error {
			name := append(c.Args, exampleFile)[0]
			switch err := writeNew(name, exampleJob); {
			case errors.Is(err, fs.ErrExist):
				return cli.Errorf("Job file %q already exists", name)
			case err != nil:
				return cli.Errorf("Error writing job file: %v", err)
			}
			fmt.Fprintf(c.Out, "Example job file written to %s\n", name)
			return nil
		},
	}
}

// writeNew writes a file that does not exist.
func writeNew(name, text string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// exampleJob is the job of "nodedrain job init".
const exampleJob = `{
  "Job": {
    "ID": "example",
    "Type": "service",
    "Datacenters": ["*"],
    "TaskGroups": [
      {
        "Name": "example",
        "Count": 1,
        "Migrate": {
          "MaxParallel": 1,
          "HealthCheck": "task_states",
          "MinHealthyTime": 5000000000,
          "HealthyDeadline": 60000000000
        },
        "RestartPolicy": {
          "Attempts": 2,
          "Interval": 1800000000000,
          "Delay": 5000000000,
          "Mode": "fail"
        },
        "Tasks": [
          {
            "Name": "hello",
            "Driver": "raw_exec",
            "Config": {
              "command": "/bin/sh",
              "args": ["-c", "while true; do echo \"$GREETING, it is $(date)\"; sleep 1; done"]
            },
            "Env": {
              "GREETING": "Hello"
            },
            "KillTimeout": 5000000000,
            "Resources": {
              "CPU": 100,
              "MemoryMB": 64
            }
          }
        ]
      }
    ]
  }
}
`
