package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// stopWait bounds the end of tasks that get their kill timeout.
const stopWait = 2 * time.Minute

// Command is "nodedrain dev".
func Command() *cli.Command {
	c := &Config{Addr: DefaultAddr, Nodes: DefaultNodes}
	return &cli.Command{
		Short: "Run a small cluster, to try things",
		Description: `
  Runs a cluster on the loopback interface: one server in memory, clients of nodes with
  the driver raw_exec, and example jobs of real processes. Prints the commands that drain
  a node and show what happens. With -simulated the driver is mock, whose tasks have no
  processes.

  SIGINT and SIGTERM end the cluster: tasks get their kill timeout, then the command ends
  drivers and shims and deletes the directory. A second signal ends the tasks at once. If
  this process is killed with SIGKILL, its tasks run until the next "nodedrain dev" with
  the same directory ends them.

  The API demands the token in DIR/token: other users of this machine cannot run tasks.
  As root, the example tasks run as an unprivileged user. Tasks of your own jobs run as
  root unless they name a user.
`,
		Options: cli.Options{
			cli.Flag(&c.Dir, "dir DIR", `Directory of the cluster: a new one, an empty one, or one of an earlier "nodedrain dev". Default: a directory of this user in the temporary directory.`),
			cli.Flag(&c.Addr, "addr ADDR", "Address of the HTTP API, on the loopback interface. Port 0 means any free port."),
			cli.Flag(&c.Nodes, "nodes N", fmt.Sprintf("Number of nodes, at most %d.", MaxNodes)),
			cli.Flag(&c.User, "user NAME", fmt.Sprintf("User of the example tasks, a name or an id. Only root can choose. Default: %s, the user without rights.",
				DefaultUser)),
			cli.Flag(&c.Simulated, "simulated", "Run simulated tasks: no process runs."),
		},
		Run: func(call *cli.Call) error { return run(call, *c) },
	}
}

func run(call *cli.Call, c Config) error {
	if c.Nodes == 0 {
		return call.UsageError("-nodes is 0 and must be above 0")
	}
	c.LogKeeper, c.Version = []string{cli.LogKeeper}, strings.TrimPrefix(cli.Version(), "nodedrain ")
	c.Progress = call.Errs
	one, err := Start(call.Ctx, c)
	if err != nil {
		return err
	}
	if err = one.WriteGuide(call.Out); err == nil {
		err = one.Wait(call.Ctx)
	}
	fmt.Fprintln(call.Out, "Ending all tasks. A second signal ends them at once.")
	limited, cancel := context.WithTimeout(context.WithoutCancel(call.Ctx), stopWait)
	defer cancel()
	ctx, stop := signal.NotifyContext(limited, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a third signal ends the process at once
	return errors.Join(err, one.Stop(ctx))
}
