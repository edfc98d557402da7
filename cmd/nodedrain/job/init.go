package job

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// exampleFile is where the example is written to.
const exampleFile = "example.json"

// InitCommand is "nodedrain job init".
type InitCommand struct{ cli.Base }

func (c *InitCommand) Synopsis() string { return "Write an example of a job" }

func (c *InitCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain job init [FILE]

  Writes an example of a job to FILE, by default example.json. The job is a service that
  prints a line each second. It needs a node whose driver raw_exec is enabled. Edit it,
  and run it with "nodedrain job run". The command contacts no server.
`)
}

func (c *InitCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *InitCommand) run(args []string) error {
	files, err := cli.ParseArguments(flag.NewFlagSet("job init", flag.ContinueOnError), "job init", args)
	switch {
	case err != nil:
		return err
	case len(files) > 1:
		return cli.UsageError("job init", "This command takes no arguments or one: <path>")
	}
	name := exampleFile
	if len(files) == 1 {
		name = files[0]
	}
	if err := writeNew(name, exampleJob); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return cli.Errorf("Job file %q already exists", name)
		}
		return cli.Errorf("Error writing job file: %v", err)
	}
	fmt.Fprintf(c.Out, "Example job file written to %s\n", name)
	return nil
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

// AutocompleteArgs completes the file.
func (c *InitCommand) AutocompleteArgs() complete.Predictor { return complete.PredictFiles("*") }

// AutocompleteFlags completes nothing: the command has no flags.
func (c *InitCommand) AutocompleteFlags() complete.Flags { return nil }

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
