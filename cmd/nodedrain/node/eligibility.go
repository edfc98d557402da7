package node

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// EligibilityCommand is "nodedrain node eligibility".
type EligibilityCommand struct{ cli.Base }

// EligibilityFlags are its flags.
type EligibilityFlags struct {
	cli.ConnectFlags
	enable, disable, self bool
}

func (f *EligibilityFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("node eligibility", flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	set.BoolVar(&f.enable, "enable", false, "")
	set.BoolVar(&f.disable, "disable", false, "")
	set.BoolVar(&f.self, "self", false, "")
	return set
}

func (c *EligibilityCommand) Synopsis() string { return "Set whether a node gets new allocations" }

func (c *EligibilityCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain node eligibility [options] NODE

  Sets whether a node gets new allocations. Allocations on the node stay. NODE is the
  node's name, its id or a prefix of the id. A draining node cannot be enabled: cancel its
  drain with "nodedrain node drain -disable". After a drain has ended, use -enable to
  return the node to service.

Options:

  -enable           The node gets new allocations.
  -disable          The node gets no new allocations.
  -self             Use the node of the agent at -address.
` + cli.ConnectHelp)
}

func (c *EligibilityCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *EligibilityCommand) run(args []string) error {
	const doing = "Error updating scheduling eligibility"
	var f EligibilityFlags
	nodes, err := cli.ParseArguments(f.Set(), "node eligibility", args)
	switch {
	case err != nil:
		return err
	case f.enable == f.disable:
		return cli.UsageError("node eligibility", "Either the '-enable' or '-disable' flag must be set")
	case f.self && len(nodes) != 0 || !f.self && len(nodes) != 1:
		return cli.UsageError("node eligibility", "Node ID must be specified if -self isn't being used")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	node, err := c.Only(asked, nodes, doing)
	if err != nil {
		return err
	}
	want := cluster.NodeIneligible
	if f.enable {
		want = cluster.NodeEligible
	}
	request := wire.EligibilityRequest{NodeID: node.ID, Eligibility: string(want)}
	if _, _, err := asked.UpdateEligibility(c.Ctx, node.ID, request); err != nil {
		return cli.Errorf("%s: %v", doing, err)
	}
	fmt.Fprintf(c.Out, "Node %q scheduling eligibility set: %s for scheduling\n", node.ID, want)
	return nil
}

// AutocompleteArgs completes the node.
func (c *EligibilityCommand) AutocompleteArgs() complete.Predictor { return c.NodeIDs() }

// AutocompleteFlags completes the flags.
func (c *EligibilityCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(EligibilityFlags).Set())
}
