package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// nodeEligibilityCommand is "nodedrain node eligibility".
type nodeEligibilityCommand struct{ operatorCommand }

// nodeEligibilityFlags are its flags.
type nodeEligibilityFlags struct {
	connectFlags
	enable, disable, self bool
}

func (f *nodeEligibilityFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("node eligibility", flag.ContinueOnError)
	f.connectFlags.set(set)
	set.BoolVar(&f.enable, "enable", false, "")
	set.BoolVar(&f.disable, "disable", false, "")
	set.BoolVar(&f.self, "self", false, "")
	return set
}

func (c *nodeEligibilityCommand) Synopsis() string { return "Set whether a node gets new allocations" }

func (c *nodeEligibilityCommand) Help() string {
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
` + connectHelp)
}

func (c *nodeEligibilityCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *nodeEligibilityCommand) run(args []string) error {
	const doing = "Error updating scheduling eligibility"
	var f nodeEligibilityFlags
	nodes, err := arguments(f.set(), "node eligibility", args)
	switch {
	case err != nil:
		return err
	case f.enable == f.disable:
		return misused("node eligibility", "Either the '-enable' or '-disable' flag must be set")
	case f.self && len(nodes) != 0 || !f.self && len(nodes) != 1:
		return misused("node eligibility", "Node ID must be specified if -self isn't being used")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	node, err := c.only(asked, nodes, doing)
	if err != nil {
		return err
	}
	want := cluster.NodeIneligible
	if f.enable {
		want = cluster.NodeEligible
	}
	request := wire.EligibilityRequest{NodeID: node.ID, Eligibility: string(want)}
	if _, _, err := asked.UpdateEligibility(c.ctx, node.ID, request); err != nil {
		return saidf("%s: %v", doing, err)
	}
	fmt.Fprintf(c.out, "Node %q scheduling eligibility set: %s for scheduling\n", node.ID, want)
	return nil
}

// AutocompleteArgs completes the node.
func (c *nodeEligibilityCommand) AutocompleteArgs() complete.Predictor { return c.nodeIDs() }

// AutocompleteFlags completes the flags.
func (c *nodeEligibilityCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(nodeEligibilityFlags).set())
}
