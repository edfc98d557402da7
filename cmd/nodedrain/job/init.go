package job

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// exampleJob is the job of "nodedrain job init".
//
//go:embed example.json
var exampleJob string

// exampleFile is where the example is written to.
const exampleFile = "example.json"

// Init is "nodedrain job init".
func Init() *cli.Command {
	return &cli.Command{
		Short: "Write an example of a job",
		Description: `
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
