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

// nodeOrSelf returns the error of a command line without a node, with several, or with both a node and -self,
// otherwise it is empty.
func nodeOrSelf(nodes int, self bool) string {
	switch {
	case self && nodes > 0:
		return "-self and a node are mutually exclusive"
	case !self && nodes == 0:
		return "Node ID must be specified if -self isn't being used"
	case nodes > 1:
		return fmt.Sprintf("This command takes one node, and the command line has %d", nodes)
	}
	return ""
}

func (f *eligibilityFlags) run(c *cli.Call) error {
	const doing = "Error updating scheduling eligibility"
	if f.enable == f.disable {
		return c.UsageError("Either the '-enable' or '-disable' flag must be set")
	}
	if text := nodeOrSelf(len(c.Args), f.self); text != "" {
		return c.UsageError(text)
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
