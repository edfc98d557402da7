package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/cli"
)

// stdio holds the input, the outputs and the environment of a command.
type stdio struct {
	in        io.Reader
	out, errs io.Writer
	// getenv is os.Getenv, except in tests.
	getenv func(string) string
}

// operatorCommand is the base of the commands that send requests to a server.
type operatorCommand struct {
	ctx context.Context // ends when the user interrupts
	stdio
}

// exit prints a command's error and returns its exit code.
func (c *operatorCommand) exit(err error) int {
	if code, is := errors.AsType[exitCode](err); is {
		return int(code)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(c.errs, err)
	return 1
}

// exitCode is the error of a command that has already printed everything.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// exitInterrupted is the exit code of a command that the user interrupted.
const exitInterrupted exitCode = 130

// said is an error with the text of Nomad's command, including capitals and full stops:
// users and scripts search for these texts.
type said string

func (s said) Error() string { return string(s) }

// saidf returns a formatted [said].
func saidf(format string, args ...any) error { return said(fmt.Sprintf(format, args...)) }

// misused returns the error of an invalid command line, with a pointer to the help.
func misused(command, what string) error {
	return saidf("%s\nFor additional help try 'nodedrain %s -help'", what, command)
}

// parentCommand is a command that only has subcommands.
type parentCommand struct{ synopsis, help string }

func (c *parentCommand) Synopsis() string { return c.synopsis }
func (c *parentCommand) Help() string     { return c.help }
func (c *parentCommand) Run([]string) int { return cli.RunResultHelp }

// warn prints the warnings of an answer, one on each line.
func (c *operatorCommand) warn(warnings string) {
	for warning := range strings.SplitSeq(warnings, "\n") {
		if warning != "" {
			fmt.Fprintf(c.errs, "Warning: %s\n", singleLine(warning))
		}
	}
}
