package alloc

import (
	"context"
	"errors"
	"flag"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Exec is "nodedrain alloc exec".
func Exec() *cli.Command {
	var f execFlags
	return &cli.Command{
		Short: "Run a command in a task",
		Help: `
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
`,
		Exits: `

Exit code:

  That of the command; 1 if it did not start or its exit code is unknown; 130 if you ended
  the connection.
`,
		Connects: true, Flags: f.set,
		Args: cli.Arguments{Most: -1, Verbatim: true, Complete: cli.IDs("allocs")},
		Run:  func(c *cli.Call) error { return (&execCommand{c}).run(&f) },
	}
}

type execCommand struct{ *cli.Call }

// execFlags are its flags.
type execFlags struct {
	taskFlags
	input, tty bool
	escape     string
}

func (f *execFlags) set(set *flag.FlagSet) {
	f.taskFlags.set(set)
	set.BoolVar(&f.input, "i", true, "")
	set.BoolVar(&f.tty, "t", false, "")
	set.StringVar(&f.escape, "e", "~", "")
}

func (c *execCommand) run(f *execFlags) error {
	about := c.Args
	if len(about) > 1 && about[1] == "--" {
		about = append(about[:1:1], about[2:]...)
	}
	if len(about) < 2 {
		return c.UsageError("This command takes two or more arguments: <alloc> <command> [<argument>...]")
	}
	if f.escape != "none" && len(f.escape) != 1 {
		return c.UsageError(`-e must be one character or "none"`)
	}
	in, out := c.terminals()
	switch {
	case !c.Set("t"):
		f.tty = f.input && in != nil && out != nil
	case f.tty && !f.input:
		return c.UsageError("-t needs -i")
	}
	api := c.API
	a, err := alloc(&c.Base, api, about[0])
	if err != nil {
		return err
	}
	task, err := taskOf(a, f.task)
	if err != nil {
		return err
	}
	request := client.ExecRequest{Task: task, Command: about[1:], TTY: f.tty}
	return c.execute(api.Alloc(a.ID), request, f, in, out)
}

// execute runs the command. in and out are the user's terminal, or nil.
func (c *execCommand) execute(a client.Alloc, r client.ExecRequest, f *execFlags, in, out *os.File) error {
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
func (c *execCommand) terminals() (in, out *os.File) {
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
	set := Exec().FlagSet("")
	if set.Parse(args[2:]) != nil || set.NArg() == 0 {
		return args
	}
	at := len(args) - set.NArg()
	return append(append(args[:at:at], "--"), args[at:]...)
}
