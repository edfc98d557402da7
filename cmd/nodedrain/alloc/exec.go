package alloc

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Exec is "nodedrain alloc exec".
func Exec() *cli.Command {
	f := execFlags{input: true, escape: "~"}
	return &cli.Command{
		Short: "Run a command in a task",
		Description: `
  Runs a command in a running task, with the task's environment. Options of nodedrain come
  before ALLOC. If the allocation has one task, -task is not needed. ALLOC is the
  allocation's id or a prefix of it.
`,
		Exits: `
  That of the command; 1 if it did not start or its exit code is unknown; 130 if you ended
  the connection.
`,
		Args: "ALLOC COMMAND [ARGUMENT...]", Verbatim: true, Connects: true, Run: f.run,
		Options: cli.Options{
			cli.Flag(&f.task, "task TASK", "The task."),
			cli.Flag(&f.input, "i", "Send the standard input to the command. -i=false sends nothing."),
			cli.Flag(&f.tty, "t", "Give the command a terminal. The default is true if the standard input and output are terminals and -i is true."),
			cli.Flag(&f.escape, "e CHARACTER", `With a terminal: CHARACTER and "." at the start of a line end the connection. CHARACTER twice sends it once. "none" switches this off.`),
		},
	}
}

// execFlags are its flags.
type execFlags struct {
	task, escape string
	input, tty   bool
}

func (f *execFlags) run(c *cli.Call) error {
	if f.escape != "none" && len(f.escape) != 1 {
		return c.UsageError(`-e must be one character or "none"`)
	}
	in, out := terminal(c.In), terminal(c.Out)
	switch {
	case !c.Set("t"):
		f.tty = f.input && in != nil && out != nil
	case f.tty && !f.input:
		return c.UsageError("-t needs -i")
	}
	a, task, err := taskNamed(c, f.task)
	if err != nil {
		return err
	}
	return f.execute(c, c.API.Alloc(a.ID), client.ExecRequest{Task: task, Command: c.Args[1:], TTY: f.tty}, in, out)
}

// execute runs the command. in and out are the user's terminal, or nil.
func (f *execFlags) execute(c *cli.Call, a client.Alloc, r client.ExecRequest, in, out *os.File) error {
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

// terminal returns the terminal that a stream is, or nil.
func terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
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

// rawTerminal hands each key of a terminal on at once, Ctrl-C too. The caller calls restore.
func rawTerminal(in *os.File) (restore func(), err error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(in.Fd()), before) }, nil
}

// watchSize sends the size of a terminal, and again when it changes, until the context ends.
func watchSize(ctx context.Context, out *os.File, sizes chan<- wire.TerminalSize) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if width, height, err := term.GetSize(int(out.Fd())); err == nil && width > 0 && height > 0 {
			select {
			case sizes <- wire.TerminalSize{Height: height, Width: width}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// escapeReader reads the keys of a user. The escape character at the start of a line is kept until the next
// key: a dot ends the input and calls left, a second one sends one of them.
type escapeReader struct {
	from   io.Reader
	escape byte
	left   func()
	// inLine means that the last key did not end a line, held that it was the escape character at the
	// start of one.
	inLine, held, over bool
}

func (r *escapeReader) Read(p []byte) (int, error) {
	if r.over {
		return 0, io.EOF
	}
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	buffer := make([]byte, len(p)-1) // a held character may come before it
	n, err := r.from.Read(buffer)
	kept := p[:0]
	for _, key := range buffer[:n] {
		switch {
		case r.held && key == '.':
			r.over = true
			r.left()
			return len(kept), nil
		case r.held && key == r.escape:
			r.held, r.inLine = false, true
			kept = append(kept, key)
			continue
		case r.held:
			r.held = false
			kept = append(kept, r.escape)
		case !r.inLine && key == r.escape:
			r.held = true
			continue
		}
		kept = append(kept, key)
		r.inLine = key != '\r' && key != '\n'
	}
	if err != nil && r.held {
		r.held = false
		kept = append(kept, r.escape)
	}
	return len(kept), err
}
