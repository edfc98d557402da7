package node

import (
	"flag"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Eligibility is "nodedrain node eligibility".
func Eligibility() *cli.Command {
	var f eligibilityFlags
	return &cli.Command{
		Short: "Set whether a node gets new allocations",
		Help: `
Usage: nodedrain node eligibility [options] NODE

  Sets whether a node gets new allocations. Allocations on the node stay. NODE is the
  node's name, its id or a prefix of the id. A draining node cannot be enabled: cancel its
  drain with "nodedrain node drain -disable". After a drain has ended, use -enable to
  return the node to service.

Options:

  -enable           The node gets new allocations.
  -disable          The node gets no new allocations.
  -self             Use the node of the agent at -address.
`,
		Connects: true, Flags: f.set,
		Args: cli.Arguments{Most: -1, Complete: cli.NodeIDs},
		Run:  func(c *cli.Call) error { return (&eligibilityCommand{c}).run(&f) },
	}
}

type eligibilityCommand struct{ *cli.Call }

// eligibilityFlags are its flags.
type eligibilityFlags struct {
	enable, disable, self bool
}

func (f *eligibilityFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.enable, "enable", false, "")
	set.BoolVar(&f.disable, "disable", false, "")
	set.BoolVar(&f.self, "self", false, "")
}

func (c *eligibilityCommand) run(f *eligibilityFlags) error {
	const doing = "Error updating scheduling eligibility"
	switch {
	case f.enable == f.disable:
		return c.UsageError("Either the '-enable' or '-disable' flag must be set")
	case f.self && len(c.Args) != 0 || !f.self && len(c.Args) != 1:
		return c.UsageError("Node ID must be specified if -self isn't being used")
	}
	api := c.API
	node, err := c.Only(api, c.Args, doing)
	if err != nil {
		return err
	}
	want := cluster.NodeIneligible
	if f.enable {
		want = cluster.NodeEligible
	}
	request := wire.EligibilityRequest{NodeID: node.ID, Eligibility: string(want)}
	if _, _, err := api.UpdateEligibility(c.Ctx, node.ID, request); err != nil {
		return cli.Errorf("%s: %v", doing, err)
	}
	fmt.Fprintf(c.Out, "Node %q scheduling eligibility set: %s for scheduling\n", node.ID, want)
	return nil
}
