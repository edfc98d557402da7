package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/cli"
)

// Stdio holds the input, the outputs and the environment of a command.
type Stdio struct {
	In        io.Reader
	Out, Errs io.Writer
	// getenv is os.Getenv, except in tests.
	Getenv func(string) string
}

// Base is the base of the commands that send requests to a server.
type Base struct {
	Ctx context.Context // ends when the user interrupts
	Stdio
}

// Exit prints a command's error and returns its exit code.
func (c *Base) Exit(err error) int {
	if code, is := errors.AsType[ExitCode](err); is {
		return int(code)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(c.Errs, err)
	return 1
}

// ExitCode is the error of a command that has already printed everything.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// ExitInterrupted is the exit code of a command that the user interrupted.
const ExitInterrupted ExitCode = 130

// Error is an error with the text of Nomad's command, including capitals and full stops:
// users and scripts search for these texts.
type Error string

func (s Error) Error() string { return string(s) }

// Errorf returns a formatted [said].
func Errorf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// UsageError returns the error of an invalid command line, with a pointer to the help.
func UsageError(command, what string) error {
	return Errorf("%s\nFor additional help try 'nodedrain %s -help'", what, command)
}

// ParentCommand is a command that only has subcommands.
type ParentCommand struct{ Short, Long string }

func (c *ParentCommand) Synopsis() string { return c.Short }
func (c *ParentCommand) Help() string     { return c.Long }
func (c *ParentCommand) Run([]string) int { return cli.RunResultHelp }

// Warn prints the warnings of an answer, one on each line.
func (c *Base) Warn(warnings string) {
	for warning := range strings.SplitSeq(warnings, "\n") {
		if warning != "" {
			fmt.Fprintf(c.Errs, "Warning: %s\n", SingleLine(warning))
		}
	}
}
