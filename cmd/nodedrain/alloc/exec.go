package alloc

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

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// ExecCommand is "nodedrain alloc exec".
type ExecCommand struct{ cli.Base }

// ExecFlags are its flags.
type ExecFlags struct {
	taskFlags
	input, tty bool
	escape     string
}

func (f *ExecFlags) Set() *flag.FlagSet {
	set := f.taskFlags.set("alloc exec")
	set.BoolVar(&f.input, "i", true, "")
	set.BoolVar(&f.tty, "t", false, "")
	set.StringVar(&f.escape, "e", "~", "")
	return set
}

func (c *ExecCommand) Synopsis() string { return "Run a command in a task" }

func (c *ExecCommand) Help() string {
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
`+cli.ConnectHelp) + `

Exit code:

  That of the command; 1 if it did not start or its exit code is unknown; 130 if you ended
  the connection.
`
}

func (c *ExecCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *ExecCommand) run(args []string) error {
	var f ExecFlags
	set := f.Set()
	set.SetOutput(io.Discard)
	if err := cli.Parse(set, "alloc exec", args); err != nil {
		return err
	}
	about := set.Args()
	if len(about) > 1 && about[1] == "--" {
		about = append(about[:1:1], about[2:]...)
	}
	if len(about) < 2 {
		return cli.UsageError("alloc exec", "This command takes two or more arguments: <alloc> <command> [<argument>...]")
	}
	if f.escape != "none" && len(f.escape) != 1 {
		return cli.UsageError("alloc exec", `-e must be one character or "none"`)
	}
	in, out := c.terminals()
	switch {
	case !cli.SetFlags(set)["t"]:
		f.tty = f.input && in != nil && out != nil
	case f.tty && !f.input:
		return cli.UsageError("alloc exec", "-t needs -i")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.Base, asked, about[0])
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
func (c *ExecCommand) execute(a client.Alloc, r client.ExecRequest, f *ExecFlags, in, out *os.File) error {
	ctx, cancel := context.WithCancel(c.Ctx)
	var watching sync.WaitGroup
	defer func() {
		cancel()
		watching.Wait()
	}()
	streams := client.ExecStreams{Stdout: c.Out, Stderr: c.Errs}
	if f.input {
		streams.Stdin = c.In
	}
	if r.TTY && in != nil {
		restore, err := rawTerminal(in)
		if err != nil {
			return cli.Errorf("Error preparing the terminal: %v", err)
		}
		defer restore()
		if f.escape != "none" {
			streams.Stdin = &escapeReader{from: c.In, escape: f.escape[0], left: cancel}
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
		return cli.ExitInterrupted
	case err != nil:
		return cli.Errorf("failed to exec into task: %v", err)
	case code < 0 || code > 255: // a process cannot have this one
		return cli.Errorf("the command ended with exit code %d", code)
	case code != 0:
		return cli.ExitCode(code)
	}
	return nil
}

// terminals returns the input and the output of the command if they are terminals, otherwise nil.
func (c *ExecCommand) terminals() (in, out *os.File) {
	is := func(stream any) *os.File {
		if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return f
		}
		return nil
	}
	return is(c.In), is(c.Out)
}

// Untouched marks where the command of "alloc exec" begins, so that its options, such as -h, are not those
// of nodedrain.
func Untouched(args []string) []string {
	if len(args) < 2 || args[0] != "alloc" || args[1] != "exec" {
		return args
	}
	set := new(ExecFlags).Set()
	set.SetOutput(io.Discard)
	if set.Parse(args[2:]) != nil || set.NArg() == 0 {
		return args
	}
	at := len(args) - set.NArg()
	return append(append(args[:at:at], "--"), args[at:]...)
}

// AutocompleteArgs completes the allocation.
func (c *ExecCommand) AutocompleteArgs() complete.Predictor { return c.Ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *ExecCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(ExecFlags).Set())
}
