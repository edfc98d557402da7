package node

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Drain is "nodedrain node drain".
func Drain() *cli.Command {
	var f drainFlags
	return &cli.Command{
		Short: "Drain a node, stop draining it, or watch it drain",
		Help: `
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
`,
		Exits: `

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
  130 The monitor was interrupted. The drain continues.`,
		Connects: true, Flags: f.set,
		Args: cli.Arguments{Most: -1, Complete: cli.NodeIDs},
		Run:  func(c *cli.Call) error { return (&drainCommand{c}).run(&f) },
	}
}

type drainCommand struct{ *cli.Call }

func (c *drainCommand) run(f *drainFlags) error {
	if what := f.conflict(len(c.Args)); what != "" {
		return c.UsageError(what)
	}
	limit, err := f.limit()
	if err != nil {
		return err
	}
	api := c.API
	id, err := c.Named(api, c.Args)
	if err != nil {
		return err
	}
	node, index, err := c.Find(api, id, "Error toggling drain mode")
	if err != nil {
		return err
	}
	if f.monitor {
		return c.resume(api, f, node, index)
	}
	if f.disable && node.DrainStrategy == nil && f.key == "" {
		return notDraining(node)
	}
	before := c.drainBefore(api, node)
	if err := c.confirm(api, f, node, id, before); err != nil {
		return err
	}
	if f.disable {
		return c.disable(api, f, node)
	}
	return c.enable(api, f, node, limit, before)
}

// notDraining is the error of a cancel without a drain.
func notDraining(node *wire.Node) error {
	return cli.Errorf("Node %q does not drain: there is nothing to disable", node.ID)
}

func (f *drainFlags) verb() string {
	if f.enable {
		return "enable"
	}
	return "disable"
}

// disable ends the drain of a node. It keeps the drain's metadata and adds the reason of
// the end.
func (c *drainCommand) disable(api *client.Client, f *drainFlags, node *wire.Node) error {
	var before map[string]string
	if node.LastDrain != nil {
		before = node.LastDrain.Meta
	}
	written, _, err := api.UpdateDrain(c.Ctx, node.ID, wire.DrainRequest{
		NodeID: node.ID, MarkEligible: !f.keepIneligible, Meta: f.meta.with(before, "cancel_message", f.message),
	}, f.key)
	if err != nil {
		return cli.Errorf("Error updating drain specification: %v", err)
	}
	if node.DrainStrategy == nil && !written.Repeated {
		return notDraining(node)
	}
	fmt.Fprintf(c.Out, "Node %q drain strategy unset\n", node.ID)
	c.printRepeated(written)
	c.printStopping(written)
	return nil
}

// printRepeated reports a request that the servers had applied before.
func (c *drainCommand) printRepeated(written *wire.DrainResponse) {
	if written.Repeated {
		fmt.Fprintln(c.Out, "The servers applied this request before: nothing has changed")
	}
}

// printStopping lists the allocations that still stop although the drain was cancelled.
func (c *drainCommand) printStopping(written *wire.DrainResponse) {
	if written.Withdrawn > 0 {
		fmt.Fprintf(c.Out, "%s unmarked before the scheduler stopped them\n", cli.Count(written.Withdrawn, "allocation"))
	}
	if len(written.StillStopping) == 0 {
		return
	}
	fmt.Fprintf(c.Out, "%s will stop nevertheless:\n", cli.Count(len(written.StillStopping), "allocation"))
	for _, id := range written.StillStopping {
		fmt.Fprintf(c.Out, "  %s\n", id)
	}
}

// enable starts or changes the drain of a node and monitors it.
func (c *drainCommand) enable(api *client.Client, f *drainFlags, node *wire.Node, limit time.Duration, before *wire.Drain) error {
	written, answer, err := api.UpdateDrain(c.Ctx, node.ID, wire.DrainRequest{
		NodeID: node.ID, MarkEligible: !f.keepIneligible, Meta: f.meta.with(nil, "message", f.message),
		DrainSpec: &wire.DrainSpec{Deadline: limit, IgnoreSystemJobs: f.ignoreSystem},
	}, f.key)
	if err != nil {
		return cli.Errorf("Error updating drain specification: %v", err)
	}
	if f.detach {
		fmt.Fprintf(c.Out, "Node %q drain strategy set\n", node.ID)
		c.printRepeated(written)
		c.printReplaced(before, written)
		return nil
	}
	now := time.Now()
	drain.Stamped(c.Out, now, "Ctrl-C to stop monitoring: will not cancel the node drain")
	drain.Stamped(c.Out, now, fmt.Sprintf("Node %q drain strategy set", node.ID))
	c.printRepeated(written)
	c.printReplaced(before, written)
	return c.watch(api, f, drain.Follower{Node: node.ID, SkipSystem: f.ignoreSystem}, answer.Index)
}

// resume monitors a running drain.
func (c *drainCommand) resume(api *client.Client, f *drainFlags, node *wire.Node, index uint64) error {
	if node.DrainStrategy == nil {
		fmt.Fprintln(c.Out, "No drain strategy set")
		return nil
	}
	drain.Stamped(c.Out, time.Now(), fmt.Sprintf("Monitoring node %q: Ctrl-C to detach monitoring", node.ID))
	follow := drain.Follower{Node: node.ID, Strategy: node.DrainStrategy, SkipSystem: f.ignoreSystem}
	return c.watch(api, f, follow, index)
}

// watch monitors a drain from the given index.
func (c *drainCommand) watch(api *client.Client, f *drainFlags, follow drain.Follower, index uint64) error {
	m := &drain.Monitor{API: api, Follow: follow, Index: index, Show: drain.NewLines(c.Out, c.Errs), Contact: cli.Contact{Patience: cli.MonitorPatience}}
	if cli.TerminalWidth(c.Out) > 0 && !f.plain {
		m.Show = drain.NewBar(c.Out)
	}
	err := m.Run(c.Ctx)
	if err == nil {
		err = c.lookForVolumes(m)
	}
	if err == cli.ExitInterrupted {
		c.interrupted(m)
	}
	return err
}

// lookForVolumes prints which volumes are still on the node after its drain. The error is nil if none is.
func (c *drainCommand) lookForVolumes(m *drain.Monitor) error {
	left, err := m.VolumesLeft(c.Ctx)
	switch {
	case c.Ctx.Err() != nil:
		return cli.ExitInterrupted
	case err != nil:
		return cli.Errorf("Error looking for volumes on the node: %v", err)
	}
	for _, line := range left {
		drain.Stamped(c.Out, time.Now(), line)
	}
	if len(left) > 0 {
		return drain.ExitVolumesLeft
	}
	return nil
}

// interrupted prints what continues after the monitor was interrupted.
func (c *drainCommand) interrupted(m *drain.Monitor) {
	node := m.Follow.Node
	if m.Follow.DrainEnded {
		fmt.Fprintf(c.Out, "The drain of node %q has ended. %s still to stop: nodedrain node status%s %s\n",
			node, cli.Count(m.Follow.Left(), "allocation"), c.Again(), node)
		return
	}
	fmt.Fprintf(c.Out, "The drain of node %q continues. To watch it again: nodedrain node drain -monitor%s %s\n", node, c.Again(), node)
	fmt.Fprintf(c.Out, "To cancel it: nodedrain node drain -disable%s %s\n", c.Again(), node)
}
