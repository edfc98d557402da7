package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/dev"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// devCommand is "nodedrain dev".
type devCommand struct{ cli.Base }

// devStopWait bounds the end of tasks that get their grace.
const devStopWait = 2 * time.Minute

// devFlags are its flags.
type devFlags struct{ dev.Config }

func (f *devFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("dev", flag.ContinueOnError)
	set.StringVar(&f.Dir, "dir", dev.DefaultDir(), "")
	set.StringVar(&f.Addr, "addr", dev.DefaultAddr, "")
	set.IntVar(&f.Nodes, "nodes", dev.DefaultNodes, "")
	set.StringVar(&f.User, "user", "", "")
	return set
}

func (c *devCommand) Synopsis() string { return "Run a cluster of real processes, to try things" }

func (c *devCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain dev [options]

  Runs a cluster on the loopback interface: one server in memory, clients of nodes with
  the driver raw_exec, and example jobs of real processes. Prints the commands that drain
  a node and show what happens.

  SIGINT and SIGTERM end the cluster: tasks get their kill timeout, then the command ends
  drivers and shims and deletes the directory. A second signal ends the tasks at once. If
  this process is killed with SIGKILL, its tasks run until the next "nodedrain dev" with
  the same directory ends them.

  The API demands the token in DIR/token: other users of this machine cannot run tasks.
  As root, the example tasks run as an unprivileged user. Tasks of your own jobs run as
  root unless they name a user.

Options:

  -dir DIR      Directory of the cluster: a new one, an empty one, or one of an earlier
                "nodedrain dev". Default: a directory of this user in the temporary
                directory.
  -addr ADDR    Address of the HTTP API, on the loopback interface. Port 0 means any free
                port. Default: %s.
  -nodes N      Number of nodes, at most %d. Default: %d.
  -user NAME    User of the example tasks, a name or an id. Only root can choose.
                Default: %s, the user without rights.
`, dev.DefaultAddr, dev.MaxNodes, dev.DefaultNodes, dev.DefaultUser))
}

func (c *devCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *devCommand) run(args []string) error {
	var f devFlags
	about, err := cli.ParseArguments(f.set(), "dev", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return cli.UsageError("dev", "This command takes no arguments")
	case f.Nodes == 0:
		return cli.UsageError("dev", "-nodes is 0 and must be above 0")
	}
	f.LogKeeper, f.Version = []string{cli.LogKeeper}, strings.TrimPrefix(cli.Version(), "nodedrain ")
	one, err := dev.Start(c.Ctx, f.Config)
	if err != nil {
		return err
	}
	if err = one.WriteGuide(c.Out); err == nil {
		err = one.Wait(c.Ctx)
	}
	fmt.Fprintln(c.Out, "Ending all tasks. A second signal ends them at once.")
	limited, cancel := context.WithTimeout(context.WithoutCancel(c.Ctx), devStopWait)
	defer cancel()
	ctx, stop := signal.NotifyContext(limited, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a third signal ends the process at once
	return errors.Join(err, one.Stop(ctx))
}
