package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/posener/complete"

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

  Starts, changes or cancels the drain of a node. NODE is the node's name, its id or a
  prefix of the id. Allocations of services leave at the pace of their migrate block,
  those of batch jobs when they are done. System jobs leave next, then storage plugins. At
  the deadline all remaining allocations leave, in the same order. A draining node gets no
  new allocations. After the drain it gets none until "nodedrain node eligibility
  -enable".

  After -enable the command monitors the drain until it has ended and all allocations have
  stopped. It prints a line for each event, with its time by the servers' clocks. On a
  terminal it also shows a bar with the minimum of rounds left and why allocations have
  not moved. Ctrl-C stops the monitor, not the drain. The command then prints how to watch
  the drain again and how to cancel it.

  If a server fails, the monitor continues with the next one of -address within about two
  seconds. It gives up after 10 minutes without an answer from any server.

Options:

  -enable           Start the drain, or change a running one.
  -disable          Cancel the drain. Lists the allocations that stop nevertheless. The
                    node gets new allocations again, unless -keep-ineligible is set. It is
                    an error if the node does not drain.
  -monitor          Monitor a running drain.

  -deadline D       Time after which all remaining allocations leave, such as 30m or
                    2h. Default: 1h.
  -no-deadline      The drain has no deadline.
  -force            All allocations leave now.
  -ignore-system    Leave system jobs on the node.
  -keep-ineligible  With -disable: the node gets no new allocations.
  -m MESSAGE        Reason of the request, kept with the drain.
  -meta KEY=VALUE   Metadata, kept with the drain. May be repeated.

  -idempotency-token KEY
                    Apply the request once: a repeated request with the same key changes
                    nothing, even after the drain has ended. Without a key every request
                    takes effect, and each restarts the deadline.

  -detach           Do not monitor the drain.
  -plain            Print lines only, even on a terminal.
  -self             Use the node of the agent at -address.
  -yes              Do not ask for confirmation. Without it the command asks if NODE is
                    not a whole id, and before it changes a running drain.
` + connectHelp + `
Exit code:

  0   The request succeeded, or the user did not confirm it. With a monitor: the drain
      has ended, and all allocations that had to leave have stopped, with their volumes
      off the node.
  1   The request failed, or the drain's outcome is unknown: the node was deleted, or no
      server answered for 10 minutes. If monitoring fails, Nomad's command exits with 0
      instead.
  2   The drain was cancelled while it was monitored.
  3   The drain has ended and all allocations have stopped, but volumes are still on the
      node. The last lines name each with its path. Nomad's command exits with 0.
  130 The monitor was interrupted. The drain continues.
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
	if f.disable && node.DrainStrategy == nil && f.key == "" {
		return notDraining(node)
	}
	before := c.drainBefore(asked, node)
	if err := c.confirm(asked, &f, node, id, before); err != nil {
		return err
	}
	if f.disable {
		return c.disable(asked, &f, node)
	}
	return c.enable(asked, &f, node, limit, before)
}

// notDraining is the error of a cancel without a drain.
func notDraining(node *wire.Node) error {
	return saidf("Node %q does not drain: there is nothing to disable", node.ID)
}

func (f *nodeDrainFlags) verb() string {
	if f.enable {
		return "enable"
	}
	return "disable"
}

// disable ends the drain of a node. It keeps the drain's metadata and adds the reason of
// the end.
func (c *nodeDrainCommand) disable(asked *client.Client, f *nodeDrainFlags, node *wire.Node) error {
	var before map[string]string
	if node.LastDrain != nil {
		before = node.LastDrain.Meta
	}
	written, _, err := asked.UpdateDrain(c.ctx, node.ID, wire.DrainRequest{
		NodeID: node.ID, MarkEligible: !f.keepIneligible, Meta: f.meta.with(before, "cancel_message", f.message),
	}, f.key)
	if err != nil {
		return saidf("Error updating drain specification: %v", err)
	}
	if node.DrainStrategy == nil && !written.Repeated {
		return notDraining(node)
	}
	fmt.Fprintf(c.out, "Node %q drain strategy unset\n", node.ID)
	c.printRepeated(written)
	c.printStopping(written)
	return nil
}

// printRepeated reports a request that the servers had applied before.
func (c *nodeDrainCommand) printRepeated(written *wire.DrainResponse) {
	if written.Repeated {
		fmt.Fprintln(c.out, "The servers applied this request before: nothing has changed")
	}
}

// printStopping lists the allocations that still stop although the drain was cancelled.
func (c *nodeDrainCommand) printStopping(written *wire.DrainResponse) {
	if written.Withdrawn > 0 {
		fmt.Fprintf(c.out, "%s unmarked before the scheduler stopped them\n", counted(written.Withdrawn, "allocation"))
	}
	if len(written.StillStopping) == 0 {
		return
	}
	fmt.Fprintf(c.out, "%s will stop nevertheless:\n", counted(len(written.StillStopping), "allocation"))
	for _, id := range written.StillStopping {
		fmt.Fprintf(c.out, "  %s\n", id)
	}
}

// enable starts or changes the drain of a node and monitors it.
func (c *nodeDrainCommand) enable(asked *client.Client, f *nodeDrainFlags, node *wire.Node, limit time.Duration, before *wire.Drain) error {
	written, answer, err := asked.UpdateDrain(c.ctx, node.ID, wire.DrainRequest{
		NodeID: node.ID, MarkEligible: !f.keepIneligible, Meta: f.meta.with(nil, "message", f.message),
		DrainSpec: &wire.DrainSpec{Deadline: limit, IgnoreSystemJobs: f.ignoreSystem},
	}, f.key)
	if err != nil {
		return saidf("Error updating drain specification: %v", err)
	}
	if f.detach {
		fmt.Fprintf(c.out, "Node %q drain strategy set\n", node.ID)
		c.printRepeated(written)
		c.printReplaced(before, written)
		return nil
	}
	now := time.Now()
	stamped(c.out, now, "Ctrl-C to stop monitoring: will not cancel the node drain")
	stamped(c.out, now, fmt.Sprintf("Node %q drain strategy set", node.ID))
	c.printRepeated(written)
	c.printReplaced(before, written)
	return c.watch(asked, f, follower{node: node.ID, skipSystem: f.ignoreSystem}, answer.Index)
}

// resume monitors a running drain.
func (c *nodeDrainCommand) resume(asked *client.Client, f *nodeDrainFlags, node *wire.Node, index uint64) error {
	if node.DrainStrategy == nil {
		fmt.Fprintln(c.out, "No drain strategy set")
		return nil
	}
	stamped(c.out, time.Now(), fmt.Sprintf("Monitoring node %q: Ctrl-C to detach monitoring", node.ID))
	follow := follower{node: node.ID, strategy: node.DrainStrategy, skipSystem: f.ignoreSystem}
	return c.watch(asked, f, follow, index)
}

// watch monitors a drain from the given index.
func (c *nodeDrainCommand) watch(asked *client.Client, f *nodeDrainFlags, follow follower, index uint64) error {
	m := &monitor{asked: asked, follow: follow, index: index, show: newDrainLines(c.out, c.errs), contact: contact{patience: monitorPatience}}
	if terminal(c.out) > 0 && !f.plain {
		m.show = newDrainBar(c.out)
	}
	err := m.Run(c.ctx)
	if err == nil {
		err = c.lookForVolumes(m)
	}
	if err == exitInterrupted {
		c.interrupted(f, m)
	}
	return err
}

// lookForVolumes prints which volumes are still on the node after its drain. The error is nil if none is.
func (c *nodeDrainCommand) lookForVolumes(m *monitor) error {
	left, err := m.volumesLeft(c.ctx)
	switch {
	case c.ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		return saidf("Error looking for volumes on the node: %v", err)
	}
	for _, line := range left {
		stamped(c.out, time.Now(), line)
	}
	if len(left) > 0 {
		return exitVolumesLeft
	}
	return nil
}

// interrupted tells what goes on after the monitor was interrupted.
func (c *nodeDrainCommand) interrupted(f *nodeDrainFlags, m *monitor) {
	node := m.follow.node
	if m.follow.drainEnded {
		fmt.Fprintf(c.out, "The drain of node %q has ended. %s still to stop: nodedrain node status%s %s\n",
			node, counted(m.follow.left(), "allocation"), f.again(), node)
		return
	}
	fmt.Fprintf(c.out, "The drain of node %q continues. To watch it again: nodedrain node drain -monitor%s %s\n", node, f.again(), node)
	fmt.Fprintf(c.out, "To cancel it: nodedrain node drain -disable%s %s\n", f.again(), node)
}

// AutocompleteArgs completes the node.
func (c *nodeDrainCommand) AutocompleteArgs() complete.Predictor { return c.nodeIDs() }

// AutocompleteFlags completes the flags.
func (c *nodeDrainCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(nodeDrainFlags).set())
}
