package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/cli"
)

// stdio is what a command reads and writes.
type stdio struct {
	in        io.Reader
	out, errs io.Writer
	// getenv is os.Getenv, but for tests.
	getenv func(string) string
}

// operatorCommand is what the commands share that ask a server.
type operatorCommand struct {
	ctx context.Context // ends when the user interrupts
	stdio
}

// exit tells why a command failed, and returns its exit code.
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

// exitCode ends a command that has told all there is to tell.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// said is an error in the words of the compatible command, capitals and full stops
// included: people search for them.
type said string

func (s said) Error() string { return string(s) }

// saidf is [said] with what went wrong below it.
func saidf(format string, args ...any) error { return said(fmt.Sprintf(format, args...)) }

// misused says that a command line makes no sense, and where to read on.
func misused(command, what string) error {
	return saidf("%s\nFor additional help try 'nodedrain %s -help'", what, command)
}

// parentCommand is a command that only has commands.
type parentCommand struct{ synopsis, help string }

func (c *parentCommand) Synopsis() string { return c.synopsis }
func (c *parentCommand) Help() string     { return c.help }
func (c *parentCommand) Run([]string) int { return cli.RunResultHelp }
