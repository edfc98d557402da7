package node

import (
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
		Description: `
  Sets whether a node gets new allocations. Allocations on the node stay. NODE is the
  node's name, its id or a prefix of the id. A draining node cannot be enabled: cancel its
  drain with "nodedrain node drain -disable". After a drain has ended, use -enable to
  return the node to service.
`,
		Args: "NODE", CountsArgs: true, Connects: true, Run: f.run,
		Options: cli.Options{
			cli.Flag(&f.enable, "enable", "The node gets new allocations."),
			cli.Flag(&f.disable, "disable", "The node gets no new allocations."),
			selfFlag(&f.self),
		},
	}
}

// eligibilityFlags are its flags.
type eligibilityFlags struct{ enable, disable, self bool }

// selfFlag is the flag of commands about a node.
func selfFlag(self *bool) cli.Option {
	return cli.Flag(self, "self", "Use the node of the agent at -address.")
}

// nodeOrSelf is the error of a command line with both a node and -self, or with neither.
const nodeOrSelf = "Node ID must be specified if -self isn't being used"

func (f *eligibilityFlags) run(c *cli.Call) error {
	const doing = "Error updating scheduling eligibility"
	switch {
	case f.enable == f.disable:
		return c.UsageError("Either the '-enable' or '-disable' flag must be set")
	case f.self == (len(c.Args) == 1) || len(c.Args) > 1:
		return c.UsageError(nodeOrSelf)
	}
	node, err := c.Only(doing)
	if err != nil {
		return err
	}
	eligibility := cluster.NodeIneligible
	if f.enable {
		eligibility = cluster.NodeEligible
	}
	request := wire.EligibilityRequest{NodeID: node.ID, Eligibility: string(eligibility)}
	if _, _, err := c.API.UpdateEligibility(c.Ctx, node.ID, request); err != nil {
		return cli.Errorf("%s: %v", doing, err)
	}
	fmt.Fprintf(c.Out, "Node %q scheduling eligibility set: %s for scheduling\n", node.ID, eligibility)
	return nil
}
