package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/posener/complete"
	"golang.org/x/term"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// allocExecCommand is "nodedrain alloc exec".
type allocExecCommand struct{ operatorCommand }

// allocExecFlags are its flags.
type allocExecFlags struct {
	taskFlags
	input, tty bool
	escape     string
}

func (f *allocExecFlags) set() *flag.FlagSet {
	set := f.taskFlags.set("alloc exec")
	set.BoolVar(&f.input, "i", true, "")
	set.BoolVar(&f.tty, "t", false, "")
	set.StringVar(&f.escape, "e", "~", "")
	return set
}

func (c *allocExecCommand) Synopsis() string { return "Run a command in a task" }

func (c *allocExecCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc exec [options] ALLOC COMMAND [ARGUMENT...]

  Runs a command in a running task, with the task's environment. Options of nodedrain come
  before ALLOC. If the allocation has one task, -task is not needed. ALLOC is the
  allocation's id or a prefix of it.

Options:

  -task TASK        The task.
  -i                Send the standard input to the command. Default: true. -i=false sends
                    nothing.
  -t                Give the command a terminal. The default is true if the standard
                    input and output are terminals and -i is true.
  -e CHARACTER      With a terminal: CHARACTER and "." at the start of a line end the
                    connection. CHARACTER twice sends it once. "none" switches this off.
                    Default: ~.
`+connectHelp) + `

Exit code:

  That of the command; 1 if it did not start or its exit code is unknown; 130 if you ended
  the connection.
`
}

func (c *allocExecCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *allocExecCommand) run(args []string) error {
	var f allocExecFlags
	set := f.set()
	set.SetOutput(io.Discard)
	if err := parse(set, "alloc exec", args); err != nil {
		return err
	}
	about := set.Args()
	if len(about) > 1 && about[1] == "--" {
		about = append(about[:1:1], about[2:]...)
	}
	if len(about) < 2 {
		return misused("alloc exec", "This command takes two or more arguments: <alloc> <command> [<argument>...]")
	}
	if f.escape != "none" && len(f.escape) != 1 {
		return misused("alloc exec", `-e must be one character or "none"`)
	}
	in, out := c.terminals()
	switch {
	case !given(set)["t"]:
		f.tty = f.input && in != nil && out != nil
	case f.tty && !f.input:
		return misused("alloc exec", "-t needs -i")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.operatorCommand, asked, about[0])
	if err != nil {
		return err
	}
	task, err := taskOf(a, f.task)
	if err != nil {
		return err
	}
	request := client.ExecRequest{Task: task, Command: about[1:], TTY: f.tty}
	return c.execute(asked.Alloc(a.ID), request, &f, in, out)
}

// execute runs the command. in and out are the user's terminal, or nil.
func (c *allocExecCommand) execute(a client.Alloc, r client.ExecRequest, f *allocExecFlags, in, out *os.File) error {
	ctx, cancel := context.WithCancel(c.ctx)
	var watching sync.WaitGroup
	defer func() {
		cancel()
		watching.Wait()
	}()
	streams := client.ExecStreams{Stdout: c.out, Stderr: c.errs}
	if f.input {
		streams.Stdin = c.in
	}
	if r.TTY && in != nil {
		restore, err := rawTerminal(in)
		if err != nil {
			return saidf("Error preparing the terminal: %v", err)
		}
		defer restore()
		if f.escape != "none" {
			streams.Stdin = &escapeReader{from: c.in, escape: f.escape[0], left: cancel}
		}
	}
	if r.TTY && out != nil {
		sizes := make(chan wire.TerminalSize)
		streams.Sizes = sizes
		watching.Go(func() { watchSize(ctx, out, sizes) })
	}
	code, err := a.Exec(ctx, r, streams)
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case err != nil:
		return saidf("failed to exec into task: %v", err)
	case code < 0 || code > 255: // a process cannot have this one
		return saidf("the command ended with exit code %d", code)
	case code != 0:
		return exitCode(code)
	}
	return nil
}

// terminals returns the input and the output of the command if they are terminals, otherwise nil.
func (c *allocExecCommand) terminals() (in, out *os.File) {
	is := func(stream any) *os.File {
		if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return f
		}
		return nil
	}
	return is(c.in), is(c.out)
}

// untouched marks where the command of "alloc exec" begins, so that its options, such as -h, are not those
// of nodedrain.
func untouched(args []string) []string {
	if len(args) < 2 || args[0] != "alloc" || args[1] != "exec" {
		return args
	}
	set := new(allocExecFlags).set()
	set.SetOutput(io.Discard)
	if set.Parse(args[2:]) != nil || set.NArg() == 0 {
		return args
	}
	at := len(args) - set.NArg()
	return append(append(args[:at:at], "--"), args[at:]...)
}

// AutocompleteArgs completes the allocation.
func (c *allocExecCommand) AutocompleteArgs() complete.Predictor { return c.ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *allocExecCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(allocExecFlags).set())
}
