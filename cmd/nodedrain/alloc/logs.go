package alloc

import (
	"flag"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// LogsCommand is "nodedrain alloc logs".
type LogsCommand struct{ cli.Base }

// LogsFlags are its flags.
type LogsFlags struct {
	taskFlags
	follow, stderr, stdout, tail bool
	lines, bytes                 int64
}

func (f *LogsFlags) Set() *flag.FlagSet {
	set := f.taskFlags.set("alloc logs")
	set.BoolVar(&f.follow, "f", false, "")
	set.BoolVar(&f.stderr, "stderr", false, "")
	set.BoolVar(&f.stdout, "stdout", false, "")
	set.BoolVar(&f.tail, "tail", false, "")
	set.Int64Var(&f.lines, "n", 0, "")
	set.Int64Var(&f.bytes, "c", 0, "")
	return set
}

// defaultLines is the number of lines of -tail.
const defaultLines = 10

func (c *LogsCommand) Synopsis() string { return "Show the output of a task" }

func (c *LogsCommand) Help() string {
	return strings.TrimSpace(`
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
`+cli.ConnectHelp) + `

Exit code:

  0     The log was printed. With -f: the task has ended.
  1     The log cannot be read. With -f: no server answered for 10 minutes.
  130   After Ctrl-C.
`
}

func (c *LogsCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *LogsCommand) run(args []string) error {
	var f LogsFlags
	set := f.Set()
	about, err := cli.ParseArguments(set, "alloc logs", args)
	if err != nil {
		return err
	}
	id, err := f.about("alloc logs", about)
	if err != nil {
		return err
	}
	seen := cli.SetFlags(set)
	switch err := cli.Exclusive(seen, [][2]string{{"stdout", "stderr"}, {"n", "c"}}); {
	case err != nil:
		return cli.UsageError("alloc logs", err.Error())
	case f.lines < 0 || f.bytes < 0:
		return cli.UsageError("alloc logs", "-n and -c must be 0 or more")
	case f.tail && !seen["n"] && !seen["c"]:
		f.lines, seen["n"] = defaultLines, true
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.Base, asked, id)
	if err != nil {
		return err
	}
	task, err := taskOf(a, f.task)
	if err != nil {
		return err
	}
	from := &taskLog{alloc: asked.Alloc(a.ID), out: c.Out, errs: c.Errs, from: client.LogsQuery{Task: task, Stderr: f.stderr}}
	if seen["c"] {
		from.from.FromEnd, from.from.Offset = true, f.bytes
	}
	if seen["n"] {
		err = from.printLast(c.Ctx, f.lines)
	}
	switch {
	case err == nil && f.follow:
		err = c.follow(asked, a.ID, from)
	case err == nil && !seen["n"]:
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

// AutocompleteArgs completes the allocation.
func (c *LogsCommand) AutocompleteArgs() complete.Predictor { return c.Ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *LogsCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(LogsFlags).Set())
}
