package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// stopWait bounds the end of tasks that get their kill timeout.
const stopWait = 2 * time.Minute

// command is one run of "nodedrain dev".
type command struct {
	Config
	// servers, name and class are for simulated clients of running servers.
	servers     cli.ListFlag
	name, class string
}

// Command is "nodedrain dev".
func Command() *cli.Command {
	c := &command{Config: Config{Addr: DefaultAddr}, name: "sim", class: simulatedClass}
	return &cli.Command{
		Short: "Run a small cluster, to try things",
		Forms: []string{"[options]", "-simulated -servers URLS [options]"},
		About: `
  Runs a cluster on the loopback interface: one server in memory, clients of nodes with
  the driver raw_exec, and example jobs of real processes. Prints the commands that drain
  a node and show what happens. With -simulated the clients are simulated, and no process
  runs.

  SIGINT and SIGTERM end the cluster: tasks get their kill timeout, then the command ends
  drivers and shims and deletes the directory. A second signal ends the tasks at once. If
  this process is killed with SIGKILL, its tasks run until the next "nodedrain dev" with
  the same directory ends them.

  The API demands the token in DIR/token: other users of this machine cannot run tasks.
  As root, the example tasks run as an unprivileged user. Tasks of your own jobs run as
  root unless they name a user.

  The second form starts no server. It registers simulated nodes with running servers, and
  starts and stops the allocations placed on them. NOMAD_TOKEN is the token; the variables
  of TLS hold, too. After the command ends the servers mark its nodes down. A later run
  with the same names continues with the same nodes: their ids and secrets are derived
  from the names. Do not use it with production servers.
`,
		Options: cli.Options{
			cli.Flag(&c.Dir, "dir DIR", `Directory of the cluster: a new one, an empty one, or one of an earlier "nodedrain dev". Default: a directory of this user in the temporary directory.`),
			cli.Flag(&c.Addr, "addr ADDR", "Address of the HTTP API, on the loopback interface. Port 0 means any free port."),
			cli.Flag(&c.Nodes, "nodes N", fmt.Sprintf("Number of nodes. Default: %d, and %d at most; with -simulated %d, without a limit.",
				DefaultNodes, MaxNodes, DefaultSimulated)),
			cli.Flag(&c.User, "user NAME", fmt.Sprintf("User of the example tasks, a name or an id. Only root can choose. Default: %s, the user without rights.",
				DefaultUser)),
			cli.Flag(&c.Simulated, "simulated", "Simulate the clients."),
			cli.Value(c.servers.Set, "servers URLS", "The addresses of running servers, separated by commas. If one does not answer, the command uses the next."),
			cli.Flag(&c.name, "name NAME", "With -servers: the nodes are named NAME-1, NAME-2 and so on."),
			cli.Flag(&c.class, "class CLASS", "With -servers: the class of the nodes."),
		},
		Run: c.run,
	}
}

func (c *command) run(call *cli.Call) error {
	var pairs [][2]string
	for _, own := range []string{"dir", "addr", "user"} {
		pairs = append(pairs, [2]string{"servers", own})
	}
	if err := call.Exclusive(pairs...); err != nil {
		return err
	}
	switch {
	case call.Set("nodes") && c.Nodes < 1:
		return call.UsageError(fmt.Sprintf("-nodes is %d and must be above 0", c.Nodes))
	case call.Set("servers") && !c.Simulated:
		return call.UsageError("-servers needs -simulated: \"nodedrain client\" runs a real client of running servers")
	case call.Set("servers"):
		return c.join(call)
	case call.Set("name"), call.Set("class"):
		return call.UsageError("-name and -class need -servers")
	}
	c.LogKeeper, c.Version = []string{cli.LogKeeper}, strings.TrimPrefix(cli.Version(), "nodedrain ")
	one, err := Start(call.Ctx, c.Config)
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

// join runs simulated clients of running servers.
func (c *command) join(call *cli.Call) error {
	config, err := client.FromEnv(call.Getenv)
	if err != nil {
		return err
	}
	if c.Nodes == 0 {
		c.Nodes = DefaultSimulated
	}
	nodes := simulatedNodes(c.name, c.class, c.Nodes)
	return remote.Run(call.Ctx, remote.Config{
		Addresses: c.servers, Token: config.Token, TLS: config.TLS, Nodes: nodes,
		Logger:     hclog.New(&hclog.LoggerOptions{Name: "clients", Level: hclog.Warn, Output: call.Errs}),
		Registered: printFirst(call, nodes),
	})
}

// printFirst returns a function that prints each node when it is first registered. The function may be
// called from several goroutines.
func printFirst(call *cli.Call, nodes []*cluster.Node) func(cluster.NodeID) {
	names := map[cluster.NodeID]string{}
	for _, n := range nodes {
		names[n.ID] = n.Name
	}
	var mu sync.Mutex
	return func(id cluster.NodeID) {
		mu.Lock()
		defer mu.Unlock()
		if name, first := names[id]; first {
			delete(names, id)
			fmt.Fprintf(call.Out, "Node %q is registered: %s\n", id, name)
		}
	}
}
