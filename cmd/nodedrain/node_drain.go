package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// nodeDrainCommand is "nodedrain node drain".
type nodeDrainCommand struct{ operatorCommand }

func (c *nodeDrainCommand) Synopsis() string {
	return "Drain a node, stop draining it, or watch it drain"
}

func (c *nodeDrainCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain node drain [options] NODE

  Says that what runs on a node is to leave it, or need not leave any more. NODE is
  the node's id or its beginning. Services leave at the pace of their migrate block,
  batch work when it is done, then system jobs, then storage plugins; at the deadline
  all that is left leaves, in that order. A node that drains gets no new work, and
  none after it has drained until "nodedrain node eligibility -enable".

  After -enable the drain is watched until it has ended and everything has stopped:
  what happens is told line by line, on a terminal above a bar with the time left at
  the present pace and the reasons of what has not moved. Ctrl-C stops watching, not
  the drain.

Options:

  -enable           Drain the node, or change how it drains.
  -disable          Stop draining it. Lists what could not be called back. The node
                    gets new work again, unless -keep-ineligible.
  -monitor          Watch a drain that runs.

  -deadline D       When all that is left leaves: 30m, 2h. Default: 1h.
  -no-deadline      Never.
  -force            At once.
  -ignore-system    Leave system jobs on the node.
  -keep-ineligible  With -disable, have the node get no new work.
  -m MESSAGE        Why; kept with the drain.
  -meta KEY=VALUE   More about it; as often as needed.

  -idempotency-token KEY
                    Ask only once: the same request with the same key changes nothing,
                    also after the drain has ended. Without it each counts, and a
                    deadline counts from the last.

  -detach           Do not watch.
  -plain            Watch in lines, also on a terminal.
  -self             The node that runs where the server asked runs.
  -yes              Do not ask when NODE is only the beginning of an id.
` + connectHelp + `
Exit code:

  0   Done as asked, or not confirmed. After watching: the drain has ended and all
      that had to leave has stopped.
  1   Not done, or what came of the drain is not known: the node was deleted, or no
      server answered. Differs from the compatible command, whose exit code is then 0.
  2   The drain was cancelled while it was watched.
  130 Interrupted while watching. The drain goes on.
`)
}

func (c *nodeDrainCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *nodeDrainCommand) run(args []string) error {
	var f nodeDrainFlags
	nodes, err := arguments(f.set(), "node drain", args)
	if err != nil {
		return err
	}
	if what := f.conflict(len(nodes)); what != "" {
		return misused("node drain", what)
	}
	limit, err := f.limit()
	if err != nil {
		return err
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	id, err := c.named(asked, nodes)
	if err != nil {
		return err
	}
	node, index, err := c.find(asked, id, "Error toggling drain mode")
	if err != nil {
		return err
	}
	if f.monitor {
		return c.resume(asked, &f, node, index)
	}
	if id != node.ID && !f.yes {
		if err := c.confirmed(fmt.Sprintf("Are you sure you want to %s drain mode for node %q? [y/N]", f.verb(), node.ID)); err != nil {
			return err
		}
	}
	if f.disable {
		return c.disable(asked, &f, node)
	}
	return c.enable(asked, &f, node, limit)
}

func (f *nodeDrainFlags) verb() string {
	if f.enable {
		return "enable"
	}
	return "disable"
}

// named is the node that the command line names: the argument, or without one the
// server's own node.
func (c *operatorCommand) named(asked *client.Client, nodes []string) (string, error) {
	if len(nodes) > 0 {
		return nodes[0], nil
	}
	return c.ownNode(asked)
}

// disable ends the drain of a node. What was said of it stays, with why it ended.
func (c *nodeDrainCommand) disable(asked *client.Client, f *nodeDrainFlags, node *wire.Node) error {
	var before map[string]string
	if node.LastDrain != nil {
		before = node.LastDrain.Meta
	}
	written, _, err := asked.UpdateDrainOnce(c.ctx, node.ID, wire.DrainRequest{
		NodeID: node.ID, MarkEligible: !f.keepIneligible, Meta: f.meta.with(before, "cancel_message", f.message),
	}, f.key)
	if err != nil {
		return saidf("Error updating drain specification: %v", err)
	}
	fmt.Fprintf(c.out, "Node %q drain strategy unset\n", node.ID)
	c.tellRepeated(written)
	c.tellStopping(written)
	return nil
}

// tellRepeated says that the servers had the request before.
func (c *nodeDrainCommand) tellRepeated(written *wire.DrainResponse) {
	if written.Repeated {
		fmt.Fprintln(c.out, "The same was asked before: nothing has changed")
	}
}

// tellStopping lists what goes on leaving although the drain has been called off.
func (c *nodeDrainCommand) tellStopping(written *wire.DrainResponse) {
	if written.Withdrawn > 0 {
		fmt.Fprintf(c.out, "%s called back before they were asked to stop\n", counted(written.Withdrawn, "allocation"))
	}
	if len(written.StillStopping) == 0 {
		return
	}
	fmt.Fprintf(c.out, "%s could not be called back and will stop:\n", counted(len(written.StillStopping), "allocation"))
	for _, id := range written.StillStopping {
		fmt.Fprintf(c.out, "  %s\n", id)
	}
}

// enable begins or changes the drain of a node and watches it.
func (c *nodeDrainCommand) enable(asked *client.Client, f *nodeDrainFlags, node *wire.Node, limit time.Duration) error {
	written, answer, err := asked.UpdateDrainOnce(c.ctx, node.ID, wire.DrainRequest{
		NodeID: node.ID, MarkEligible: !f.keepIneligible, Meta: f.meta.with(nil, "message", f.message),
		DrainSpec: &wire.DrainSpec{Deadline: limit, IgnoreSystemJobs: f.ignoreSystem},
	}, f.key)
	if err != nil {
		return saidf("Error updating drain specification: %v", err)
	}
	if f.detach {
		fmt.Fprintf(c.out, "Node %q drain strategy set\n", node.ID)
		c.tellRepeated(written)
		return nil
	}
	now := time.Now()
	stamped(c.out, now, "Ctrl-C to stop monitoring: will not cancel the node drain")
	stamped(c.out, now, fmt.Sprintf("Node %q drain strategy set", node.ID))
	c.tellRepeated(written)
	return c.watch(asked, f, follower{node: node.ID, skipSystem: f.ignoreSystem}, answer.Index)
}

// resume watches a drain that runs.
func (c *nodeDrainCommand) resume(asked *client.Client, f *nodeDrainFlags, node *wire.Node, index uint64) error {
	if node.DrainStrategy == nil {
		fmt.Fprintln(c.out, "No drain strategy set")
		return nil
	}
	stamped(c.out, time.Now(), fmt.Sprintf("Monitoring node %q: Ctrl-C to detach monitoring", node.ID))
	follow := follower{node: node.ID, strategy: node.DrainStrategy, skipSystem: f.ignoreSystem}
	return c.watch(asked, f, follow, index)
}

// watch watches a drain from a state on.
func (c *nodeDrainCommand) watch(asked *client.Client, f *nodeDrainFlags, follow follower, index uint64) error {
	m := &monitor{asked: asked, follow: follow, index: index, show: newDrainLines(c.out, c.errs), patience: monitorPatience}
	if terminal(c.out) > 0 && !f.plain {
		m.show = newDrainBar(c.out)
	}
	return m.Run(c.ctx)
}
