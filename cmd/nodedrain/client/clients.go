package client

import (
	"flag"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// ClientsCommand is "nodedrain clients".
type ClientsCommand struct{ cli.Base }

// ClientsFlags are its flags.
type ClientsFlags struct {
	cli.ConnectFlags
	servers  cli.ListFlag
	nodes    int
	name     string
	class    string
	logLevel string
}

// Defaults of [clientsFlags].
const (
	defaultClients     = 5
	defaultClientName  = "sim"
	defaultClientClass = "simulated"
)

// Set returns the set of the flags.
func (f *ClientsFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("clients", flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	set.Var(&f.servers, "servers", "")
	set.IntVar(&f.nodes, "nodes", defaultClients, "")
	set.StringVar(&f.name, "name", defaultClientName, "")
	set.StringVar(&f.class, "class", defaultClientClass, "")
	set.StringVar(&f.logLevel, "log-level", "warn", "")
	return set
}

// Synopsis returns the command in one line.
func (c *ClientsCommand) Synopsis() string { return "Simulate clients of running servers" }

// Help returns the help.
func (c *ClientsCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain clients [options]

  Simulates the clients of a cluster: registers nodes with running servers, and starts and
  stops the allocations placed on them. No process runs. The command runs until it is
  interrupted. After that the servers mark its nodes down. A later run with the same names
  continues with the same nodes.

  Use this command to try servers. The ids and secrets of simulated nodes are derived from
  their names: do not use it with production servers.

Options:

  -servers URLS     The servers' addresses, each in the form of -address, separated by
                    commas. If one does not answer, the command uses the next. Default:
                    that of -address.
  -nodes N          Number of nodes. Default: %d.
  -name NAME        The nodes are named NAME-1, NAME-2 and so on. Default: %s.
  -class CLASS      The nodes' class. Default: %s.
  -log-level LEVEL  trace, debug, info, warn, error or off. Default: warn.
`, defaultClients, defaultClientName, defaultClientClass) + cli.ConnectHelp)
}

// Run runs the command and returns its exit code.
func (c *ClientsCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *ClientsCommand) run(args []string) error {
	var f ClientsFlags
	about, err := cli.ParseArguments(f.Set(), "clients", args)
	level := hclog.LevelFromString(f.logLevel)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return cli.UsageError("clients", "This command takes no arguments")
	case f.nodes < 1:
		return cli.UsageError("clients", fmt.Sprintf("-nodes is %d and must be above 0", f.nodes))
	case level == hclog.NoLevel:
		return cli.UsageError("clients", fmt.Sprintf("-log-level is %q and must be trace, debug, info, warn, error or off", f.logLevel))
	}
	config, err := f.Over(c.Getenv)
	if err != nil {
		return err
	}
	if len(f.servers) == 0 {
		f.servers = config.Addresses()
	}
	nodes := f.simulated()
	return remote.Run(c.Ctx, remote.Config{
		Addresses: f.servers, Token: config.Token, TLS: config.TLS, Nodes: nodes,
		Logger:     hclog.New(&hclog.LoggerOptions{Name: "clients", Level: level, Output: c.Errs}),
		Registered: c.reportingFirst(nodes),
	})
}

// simulated returns the nodes. Their ids and secrets follow from their names.
func (f *ClientsFlags) simulated() (nodes []*cluster.Node) {
	for i := range f.nodes {
		name := fmt.Sprintf("%s-%d", f.name, i+1)
		n := &cluster.Node{
			ID:       cluster.NodeID(uuid.NewSHA1(uuid.NameSpaceURL, []byte("node "+name)).String()),
			SecretID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("secret of "+name)).String(),
			Name:     name, Datacenter: "dc1", NodeClass: f.class, HTTPAddr: "127.0.0.1:0", Status: cluster.NodeReady,
			Attributes: map[string]string{"os.name": "simulated"},
			Resources:  cluster.Resources{CPU: 16_000, MemoryMB: 32_768, DiskMB: 100_000},
		}
		n.Canonicalize()
		nodes = append(nodes, n)
	}
	return nodes
}

// reportingFirst returns a function that prints each node when it is first registered.
// The function may be called from several goroutines.
func (c *ClientsCommand) reportingFirst(nodes []*cluster.Node) func(cluster.NodeID) {
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
			fmt.Fprintf(c.Out, "Node %q is registered: %s\n", id, name)
		}
	}
}

// AutocompleteArgs completes nothing: the command takes no argument.
func (c *ClientsCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *ClientsCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(ClientsFlags).Set())
}
