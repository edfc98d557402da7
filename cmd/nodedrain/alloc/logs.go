package alloc

import (
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
		Description: `
  Prints the standard output of a task, as far as its node keeps it. TASK is not needed if
  the allocation has one task. ALLOC is the allocation's id or a prefix of it.

  With -f the command follows the log until the task has ended. If a connection is lost,
  or a server or the client of the node restarts, it continues from the same line.
`,
		Exits: `
  0     The log was printed. With -f: the task has ended.
  1     The log cannot be read. With -f: no server answered for 10 minutes.
  130   After Ctrl-C.
`,
		Args: "ALLOC [TASK]", Connects: true, Run: f.run,
		Options: cli.Options{
			cli.Flag(&f.follow, "f", "Wait for more output, until the task has ended."),
			cli.Flag(&f.stderr, "stderr", "Show the standard error. -stdout is the default."),
			cli.Flag(&f.stdout, "stdout", "Show the standard output."),
			cli.Flag(&f.tail, "tail", "Show the end of the log: its last 10 lines, unless -n or -c is given."),
			cli.Flag(&f.lines, "n LINES", "Show the last lines, at most 4 MiB."),
			cli.Flag(&f.bytes, "c BYTES", "Show the last bytes."),
			f.task.option(),
		},
	}
}

// logsFlags are its flags.
type logsFlags struct {
	task                         taskFlag
	follow, stderr, stdout, tail bool
	lines, bytes                 int64
}

// defaultLines is the number of lines of -tail.
const defaultLines = 10

func (f *logsFlags) run(c *cli.Call) error {
	if err := f.task.resolve(c); err != nil {
		return err
	}
	last, offset := c.Set("n"), c.Set("c")
	switch err := c.Exclusive([2]string{"stdout", "stderr"}, [2]string{"n", "c"}); {
	case err != nil:
		return c.UsageError(err.Error())
	case f.lines < 0 || f.bytes < 0:
		return c.UsageError("-n and -c must be 0 or more")
	case f.tail && !last && !offset:
		f.lines, last = defaultLines, true
	}
	a, task, err := taskNamed(c, string(f.task))
	if err != nil {
		return err
	}
	from := &taskLog{alloc: c.API.Alloc(a.ID), out: c.Out, errs: c.Errs, from: client.LogsQuery{Task: task, Stderr: f.stderr}}
	if offset {
		from.from.FromEnd, from.from.Offset = true, f.bytes
	}
	if last {
		err = from.printLast(c.Ctx, f.lines)
	}
	switch {
	case err == nil && f.follow:
		err = from.follow(c, a.ID)
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
