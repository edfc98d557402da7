package node

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Purge is "nodedrain node purge".
func Purge() *cli.Command {
	var yes bool
	return &cli.Command{
		Short: "Delete a node from the servers",
		Description: `
  Deletes a node from the servers. NODE is the node's name, its id or a prefix of the id.
  Use this command for a machine that will not return, or whose secret is lost. The
  servers give up the allocations of the node as lost and replace them. A running drain of
  the node ends as "node gone". Its record stays: see "nodedrain drain list".

  The command stops no task. If allocations may still run on the node, it names their
  number and requires a confirmation. A client that runs registers the node again by
  itself, and then stops them.
`,
		Exits: `
  0   The node is deleted.
  1   The request failed, no node or several nodes match, or the user did not confirm it.
`,
		Args: "NODE", Connects: true,
		Options: cli.Options{cli.Flag(&yes, "yes", "Skip the confirmation.")},
		Run:     func(c *cli.Call) error { return purge(c, yes) },
	}
}

func purge(c *cli.Call, yes bool) error {
	const doing = "Error purging node"
	node, _, err := c.Find(c.Args[0], doing)
	if err != nil {
		return err
	}
	allocs, _, err := c.API.NodeAllocations(c.Ctx, node.ID, client.Query{})
	if err != nil {
		return cli.Errorf("%s: %v", doing, err)
	}
	left := countMayRun(node, allocs)
	if left > 0 && !yes {
		fmt.Fprintf(c.Out, "Node %q is %s, and %s may still run on it. A purge stops no task: the servers give the allocations up and replace them\n",
			node.Name, node.Status, cli.Count(left, "allocation"))
		if err := c.Confirm(fmt.Sprintf("Purge node %q (%s)? [y/N]", node.Name, cli.ShortID(node.ID, false)), "Cancelling node purge"); err != nil {
			return err
		}
	}
	if _, _, err := client.PurgeNode(c.Ctx, c.API, node.ID); err != nil {
		return cli.Errorf("%s: %v", doing, err)
	}
	fmt.Fprintf(c.Out, "Node %q purged\n", node.ID)
	for _, line := range remains(c, node, left) {
		fmt.Fprintln(c.Out, line)
	}
	return nil
}

// countMayRun counts the allocations whose tasks may run on the node, also those that the servers have given up or
// do not list.
func countMayRun(node *wire.Node, allocs []*wire.Allocation) (n int) {
	for _, a := range allocs {
		lost := a.ClientStatus == string(cluster.ClientLost) && a.ConfirmedAt.IsZero()
		if lost || a.ClientStatus == string(cluster.ClientUnknown) || alloc.Alive(a) {
			n++
		}
	}
	return n + unlistedOn(node, allocs).Count
}

// remains returns what a purge has left.
func remains(c *cli.Call, node *wire.Node, left int) (lines []string) {
	if left > 0 {
		lines = append(lines, fmt.Sprintf("Nothing confirms the end of %s that it may run", cli.Count(left, "allocation")))
	}
	switch status := node.Status; {
	case status == string(cluster.NodeReady) || status == string(cluster.NodeInitializing):
		lines = append(lines, "Its status was "+status+". If its client works, it registers the node again and stops what the servers do not list, unless you stop it")
	case left > 0:
		lines = append(lines, "If the machine returns, its client registers the node again and stops them")
	}
	if node.DrainStrategy != nil {
		lines = append(lines, fmt.Sprintf("Its drain has ended as %q: nodedrain drain list%s", cluster.OutcomeNodeGone, c.SameServers()))
	}
	return lines
}
