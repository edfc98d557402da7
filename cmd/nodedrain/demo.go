package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/term"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/dev"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// demoCommand is "nodedrain demo".
type demoCommand struct {
	ctx       context.Context // ends when the user interrupts
	out, errs io.Writer
}

// demoFlags are the flags of "nodedrain demo".
type demoFlags struct {
	demo.Config
	json     bool
	logLevel string
}

func (f *demoFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("demo", flag.ContinueOnError)
	set.SetOutput(io.Discard) // Run prints the error
	set.StringVar(&f.Dir, "cluster", "", "")
	set.BoolVar(&f.Real, "real", false, "")
	set.IntVar(&f.Nodes, "nodes", 0, "")
	set.IntVar(&f.Drains, "drains", 0, "")
	set.DurationVar(&f.Deadline, "deadline", 0, "")
	set.Uint64Var(&f.Seed, "seed", 1, "")
	set.Float64Var(&f.TimeScale, "time-scale", 0, "")
	set.IntVar(&f.Servers, "servers", 0, "")
	set.BoolVar(&f.Loopback, "loopback", false, "")
	set.DurationVar(&f.Timeout, "timeout", 0, "")
	set.BoolVar(&f.WithoutBudget, "without", false, "")
	set.BoolVar(&f.json, "json", false, "")
	set.StringVar(&f.logLevel, "log-level", "off", "")
	return set
}

func (c *demoCommand) Synopsis() string {
	return "Drain nodes of a cluster in this process and kill the leader half-way"
}

func (c *demoCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain demo [options]

  Starts three raft servers, a scheduler and simulated clients in this process,
  registers a cluster, drains several nodes at once, kills the leader when half
  of the work is done, and prints a summary. Progress is shown as bars on a
  terminal and as plain lines elsewhere.

  The exit code is 0 only if all of these hold:
    - every drain completed, or reached its deadline if it had one;
    - the leader was killed while drains were running;
    - the witness, which shares no code with the drainer, found no violation:
      no paced mark took a group below its limit (of the jobs as they were
      registered, so "-without" can end with 0).

  Tasks are simulated and run faster than real ones, by the time scale. Raft and the
  drainer are real and are not scaled. With -real the clients are real, too: they run
  processes of the driver raw_exec, in real time. The command ends all of them before it
  exits, also on Ctrl-C. As root, the processes run as an unprivileged user.

Options:

  -cluster DIR      Load the cluster from DIR/nodes.csv and DIR/pods.csv, in the
                    format of Alibaba's cluster-trace-gpu-v2023: running pods of
                    equal request and QoS make one job. Without it a cluster is
                    generated.
  -real             Run tasks as processes of this machine. It fails with a reason if the
                    machine does not allow that. If a demo is killed with SIGKILL, its
                    processes run until the next demo of this user ends them.
  -nodes N          Nodes of the generated cluster. Default: %d; %d with -real, and
                    %d at most.
  -drains N         Nodes to drain at once, at most half of the nodes. Default: 5%%
                    of a loaded cluster, a sixth of a generated one, half with -real.
  -deadline D       Deadline of drains, in simulated time. The drains of nodes with
                    batch work and every second of the others have it. Default: %s;
                    %s with -real.
  -seed N           Seed of the generated cluster and of the choice of nodes to
                    drain. Default: 1.
  -time-scale X     Simulated seconds per real second. Default: %d.
  -servers N        Raft servers. Default: 3.
  -without          Drain the same cluster without budgets: every service job
                    gets a max_parallel of its count. The summary counts the
                    services that fall below the limit of their migrate block.
  -loopback         Connect the servers over TCP on the loopback interface
                    instead of in memory.
  -timeout D        Real time after which the demo gives up. Default: %s.
  -json             Print only a summary in JSON. Its fields are those of type
                    Summary in package demo.
  -log-level LEVEL  Print the servers' logs to standard error: trace, debug,
                    info, warn, error or off. Default: off.
`, demo.DefaultNodes, demo.DefaultRealNodes, dev.MaxNodes, demo.DefaultDeadline, demo.DefaultRealDeadline, demo.DefaultTimeScale, demo.DefaultTimeout))
}

func (c *demoCommand) Run(args []string) int {
	if err := c.run(args); err != nil {
		fmt.Fprintln(c.errs, err)
		return 1
	}
	return 0
}

// errFailed reports a failed demonstration. The summary has been printed.
type errFailed struct{}

func (errFailed) Error() string { return "the demonstration failed; the summary says why" }

func (c *demoCommand) run(args []string) error {
	var f demoFlags
	set := f.set()
	if err := cli.Parse(set, "demo", args); err != nil {
		return err
	}
	if err := cli.RequirePositive(set); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; \"nodedrain demo -h\" lists the options", set.Arg(0))
	}
	level := hclog.LevelFromString(f.logLevel)
	if level == hclog.NoLevel {
		return fmt.Errorf("-log-level is %q and must be trace, debug, info, warn, error or off", f.logLevel)
	}
	f.Logger = hclog.New(&hclog.LoggerOptions{Level: level, Output: c.errs})
	f.Progress = c.progress(f.json)
	f.LogKeeper, f.Version = []string{cli.LogKeeper}, strings.TrimPrefix(cli.Version(), "nodedrain ")
	ctx := c.ctx
	if f.Real {
		var stop context.CancelFunc
		ctx, stop = cli.HoldSignals(ctx)
		defer stop()
	}
	summary, err := demo.Run(ctx, f.Config)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("interrupted before all drains had ended: %w", err)
	case err != nil:
		return err
	}
	if err := c.print(summary, f.json); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	if !summary.OK {
		return errFailed{}
	}
	return nil
}

// progress draws bars on a terminal and writes plain lines elsewhere.
func (c *demoCommand) progress(silent bool) demo.Progress {
	if silent {
		return demo.Silence{}
	}
	if f, ok := c.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return demo.NewBars(f)
		}
	}
	return demo.NewLines(c.out)
}

func (c *demoCommand) print(s *demo.Summary, asJSON bool) error {
	if !asJSON {
		return s.Write(c.out)
	}
	encoder := json.NewEncoder(c.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}
