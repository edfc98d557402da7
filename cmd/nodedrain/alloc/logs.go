package alloc

import (
	"flag"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Logs is "nodedrain alloc logs".
func Logs() *cli.Command {
	var f logsFlags
	return &cli.Command{
		Short: "Show the output of a task",
		Help: `
Usage: nodedrain alloc logs [options] ALLOC [TASK]

  Prints the standard output of a task, as far as its node keeps it. TASK is not needed if
  the allocation has one task. ALLOC is the allocation's id or a prefix of it.

  With -f the command follows the log until the task has ended. If a connection is lost,
  or a server or the client of the node restarts, it continues from the same line.

Options:

  -f                Wait for more output, until the task has ended.
  -stderr           Show the standard error. -stdout is the default.
  -stdout           Show the standard output.
  -tail             Show the end of the log: its last 10 lines, unless -n or -c is given.
  -n LINES          Show the last lines, at most 4 MiB.
  -c BYTES          Show the last bytes.
  -task TASK        The task, instead of the second argument.
`,
		Exits: `

Exit code:

  0     The log was printed. With -f: the task has ended.
  1     The log cannot be read. With -f: no server answered for 10 minutes.
  130   After Ctrl-C.
`,
		Connects: true, Flags: f.set,
		Args: taskArguments(),
		Run:  func(c *cli.Call) error { return (&logsCommand{c}).run(&f) },
	}
}

type logsCommand struct{ *cli.Call }

// logsFlags are its flags.
type logsFlags struct {
	taskFlags
	follow, stderr, stdout, tail bool
	lines, bytes                 int64
}

func (f *logsFlags) set(set *flag.FlagSet) {
	f.taskFlags.set(set)
	set.BoolVar(&f.follow, "f", false, "")
	set.BoolVar(&f.stderr, "stderr", false, "")
	set.BoolVar(&f.stdout, "stdout", false, "")
	set.BoolVar(&f.tail, "tail", false, "")
	set.Int64Var(&f.lines, "n", 0, "")
	set.Int64Var(&f.bytes, "c", 0, "")
}

// defaultLines is the number of lines of -tail.
const defaultLines = 10

func (c *logsCommand) run(f *logsFlags) error {
	id, err := f.alloc(c.Call)
	if err != nil {
		return err
	}
	last, offset := c.Set("n"), c.Set("c")
	switch err := c.Exclusive([2]string{"stdout", "stderr"}, [2]string{"n", "c"}); {
	case err != nil:
		return err
	case f.lines < 0 || f.bytes < 0:
		return c.UsageError("-n and -c must be 0 or more")
	case f.tail && !last && !offset:
		f.lines, last = defaultLines, true
	}
	api := c.API
	a, err := alloc(&c.Base, api, id)
	if err != nil {
		return err
	}
	task, err := taskOf(a, f.task)
	if err != nil {
		return err
	}
	from := &taskLog{alloc: api.Alloc(a.ID), out: c.Out, errs: c.Errs, from: client.LogsQuery{Task: task, Stderr: f.stderr}}
	if offset {
		from.from.FromEnd, from.from.Offset = true, f.bytes
	}
	if last {
		err = from.printLast(c.Ctx, f.lines)
	}
	switch {
	case err == nil && f.follow:
		err = c.follow(api, a.ID, from)
	case err == nil && !last:
		err = from.print(c.Ctx, false)
	}
	switch {
	case c.Ctx.Err() != nil:
		return cli.ExitInterrupted
	case err != nil:
		return cli.Errorf("Error reading the log: %v", err)
	}
	return nil
}

// Over reports whether a task writes no more.
func Over(a *wire.Allocation, task string) bool {
	switch cluster.ClientStatus(a.ClientStatus) {
	case cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost:
		return true
	}
	s := a.TaskStates[task]
	return s != nil && s.State == string(cluster.TaskDead)
}
