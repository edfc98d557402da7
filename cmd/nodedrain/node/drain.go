package node

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Drain is "nodedrain node drain".
func Drain() *cli.Command {
	var f drainFlags
	return &cli.Command{
		Short: "Drain a node, pause or cancel its drain, or watch it",
		Description: `
  Starts, changes, pauses or cancels the drain of a node. NODE is the node's name, its id
  or a prefix of the id. Allocations of services leave at the pace of their migrate block,
  those of batch jobs when they are done. System jobs leave next, then storage plugins. At
  the deadline all remaining allocations leave, in the same order. A draining node gets no
  new allocations. After the drain it gets none until "nodedrain node eligibility
  -enable".

  After -enable the command monitors the drain until it has ended and no allocation is
  left to stop. It prints a line for each event, with its time by the servers' clocks. On
  a terminal it also shows a bar with the minimum of rounds left and why allocations have
  not moved. Ctrl-C stops the monitor, not the drain. The command then prints how to watch
  the drain again and how to cancel it.

  A paused drain lets no more allocations leave, except those whose job or group is gone.
  It does not end, and its deadline does not pass. What is marked already stops all the
  same, and volumes are released. A forced drain and one past its deadline cannot be
  paused. -pause and -resume need no confirmation.

  The servers give up the allocations of a node that they cannot reach. A drain does not
  wait for these lost allocations, but their tasks may still run. The last lines of the
  monitor name those whose end nothing confirms, and what to do.

  If a server fails, the monitor continues with the next one of -address within about two
  seconds. It gives up after 10 minutes without an answer from any server.

  If a drain was ended by its deadline or by -force, and some allocations do not stop in
  their stop time, the monitor ends 30 seconds later and names them. Nomad's command
  continues for ever.
`,
		Exits: `
  0   The request succeeded. With a monitor: the drain has ended, and all allocations that
      had to leave have stopped, with their volumes off the node and the data of their
      ephemeral disks copied if the job moves it. Nothing is unconfirmed.
  1   The request failed, or the user did not confirm it, or the drain's outcome is
      unknown: the node was deleted, no server answered for 10 minutes, or the servers
      have lost the drain, as by a restore of an older state. With -monitor also if the
      node does not drain and no record of a drain exists. If monitoring fails, Nomad's
      command exits with 0 instead. Also 1 if the drain has ended and the node takes work
      again: it is eligible, or has allocations that came after the drain. This is checked
      after a repeated request with an -idempotency-token, too. It replaces 0, 3 and 5.
      With -resume also if all drains are paused: the drain does not go on.
  2   The drain was cancelled.
  3   The drain has ended and all allocations have stopped, but volumes are still on the
      node. The last lines name each with its path. Nomad's command exits with 0.
  4   The drain has ended, with any outcome, and nothing confirms the end of some
      allocations: their tasks may still run. It replaces 0, 2, 3 and 5, and 1 after the
      node was deleted. Nomad's command exits with 0.
  5   The drain has ended and all allocations have stopped, but the data of some was given
      up or not copied before the end. The lines "Data not copied" name them. It replaces
      0 and 3. Nomad's command exits with 0.
  130 The monitor was interrupted. The drain continues.
  With -monitor, a drain that has ended has the same output and exit code as one that ends
  while it is monitored. Nomad's command exits with 0.
`,
		Args: "NODE", CountsArgs: true, Connects: true, Options: f.options(), Run: f.run,
	}
}

// drainRequest is one run of "nodedrain node drain" about a node.
type drainRequest struct {
	c *cli.Call
	*drainFlags
	node *wire.Node
	// before is the drain that runs on the node before the request, or nil.
	before *wire.Drain
	// foretold is what the plan has foretold that the user has seen, or nil.
	foretold *wire.DrainPlan
}

func (f *drainFlags) run(c *cli.Call) error {
	if text := f.conflict(len(c.Args)); text != "" {
		return c.UsageError(text)
	}
	limit, err := f.Limit()
	if err != nil {
		return err
	}
	id, err := c.Named()
	if err != nil {
		return err
	}
	node, index, err := c.Find(id, "Error toggling drain mode")
	if err != nil {
		if _, is := errors.AsType[cli.NoNode](err); is && f.monitor {
			err = cli.Errorf("%v\nIf the node was deleted, the record of its drain is in: nodedrain drain list%s", err, c.SameServers())
		}
		return err
	}
	switch {
	case f.pause:
		return drain.PauseOne(c, node)
	case f.resume:
		return drain.ResumeOne(c, node)
	}
	r := &drainRequest{c: c, drainFlags: f, node: node}
	if f.plan {
		plan, err := drain.PlanOf(c, node.ID, f.Spec(limit), f.plain)
		if err != nil || !f.enable {
			return err
		}
		r.foretold = foretold(plan)
	}
	if f.monitor {
		return r.resume(index)
	}
	if f.disable && node.DrainStrategy == nil && f.key == "" {
		return notDraining(node)
	}
	r.before = drainBefore(c, node)
	if err := r.confirm(id); err != nil {
		return err
	}
	if f.disable {
		return r.cancel()
	}
	return r.start(limit)
}

// notDraining is the error of a cancel without a drain.
func notDraining(node *wire.Node) error {
	return cli.Errorf("Node %q does not drain: there is nothing to disable", node.ID)
}

// cancel ends the drain of a node. It keeps the drain's metadata and adds the reason of
// the end.
func (r *drainRequest) cancel() error {
	var meta map[string]string
	if r.node.LastDrain != nil {
		meta = r.node.LastDrain.Meta
	}
	written, _, err := r.c.API.UpdateDrain(r.c.Ctx, r.node.ID, wire.DrainRequest{
		NodeID: r.node.ID, MarkEligible: !r.keepIneligible && !r.undo, Undo: r.undo, Meta: r.meta.with(meta, "cancel_message", r.message),
	}, r.key)
	if err != nil {
		return cli.Errorf("Error updating drain specification: %v", err)
	}
	if r.node.DrainStrategy == nil && !written.Repeated {
		return notDraining(r.node)
	}
	if written.Repeated {
		return r.repeated()
	}
	fmt.Fprintf(r.c.Out, "Node %q drain strategy unset\n", r.node.ID)
	r.printStopping(written)
	if r.undo {
		return r.printUndone(written)
	}
	return nil
}

// printUndone prints the eligibility of the node, and what the drain has moved.
func (r *drainRequest) printUndone(written *wire.DrainResponse) error {
	node, _, err := r.c.API.Node(r.c.Ctx, r.node.ID, client.Query{})
	if err != nil {
		return cli.Errorf("Error reading the node: %v", err)
	}
	fmt.Fprintf(r.c.Out, "Node %q is %s, as before the drain\n", node.ID, node.SchedulingEligibility)
	if len(written.Moved) == 0 {
		fmt.Fprintln(r.c.Out, "The drain has moved nothing")
		return nil
	}
	var parts []string
	for _, m := range written.Moved {
		parts = append(parts, fmt.Sprintf("%d of %s", m.Allocs, cli.JobName(m.Namespace, m.JobID)))
	}
	fmt.Fprintf(r.c.Out, "What has moved stays where it is: %s\n", strings.Join(parts, ", "))
	return nil
}

// repeated reports a request that the servers had applied before, and judges the node as it is now. Later
// requests may have changed it, and it may run work again.
func (r *drainRequest) repeated() error {
	fmt.Fprintln(r.c.Out, "The servers applied this request before: nothing has changed")
	node, answer, err := r.c.API.Node(r.c.Ctx, r.node.ID, client.Query{})
	if err != nil {
		return cli.Errorf("Error reading the node: %v", err)
	}
	r.node = node
	switch drains := node.DrainStrategy != nil; {
	case r.disable && drains:
		return cli.Errorf("Node %q drains: another request has started a drain since. To cancel it, use no -idempotency-token of an earlier request", node.ID)
	case r.enable && !r.detach:
		return r.resume(answer.Index)
	case r.enable && !drains && node.SchedulingEligibility == string(cluster.NodeEligible):
		return cli.Errorf("Node %q does not drain, and it is eligible\n%s", node.ID, r.drainAgain())
	}
	return nil
}

// drainAgain returns how to drain a node that runs work again.
func (r *drainRequest) drainAgain() string {
	return fmt.Sprintf("To drain it again, use no -idempotency-token of an earlier request: nodedrain node drain -enable%s %s", r.c.SameServers(), r.node.ID)
}

// printStopping lists the allocations that still stop although the drain was cancelled.
func (r *drainRequest) printStopping(written *wire.DrainResponse) {
	if written.Withdrawn > 0 {
		fmt.Fprintf(r.c.Out, "%s unmarked before the scheduler stopped them\n", cli.Count(written.Withdrawn, "allocation"))
	}
	if len(written.StillStopping) == 0 {
		return
	}
	fmt.Fprintf(r.c.Out, "%s will stop nevertheless:\n", cli.Count(len(written.StillStopping), "allocation"))
	for _, id := range written.StillStopping {
		fmt.Fprintf(r.c.Out, "  %s\n", id)
	}
}

// start starts or changes the drain of a node and monitors it.
func (r *drainRequest) start(limit time.Duration) error {
	stopsFirst, err := r.stopsFirst()
	if err != nil {
		return err
	}
	written, answer, err := r.c.API.UpdateDrain(r.c.Ctx, r.node.ID, wire.DrainRequest{
		NodeID: r.node.ID, MarkEligible: !r.keepIneligible, Meta: r.meta.with(nil, "message", r.message),
		DrainSpec: r.Spec(limit), Plan: r.foretold,
	}, r.key)
	if err != nil {
		return cli.Errorf("Error updating drain specification: %v", err)
	}
	if written.Repeated {
		return r.repeated()
	}
	if r.detach {
		fmt.Fprintf(r.c.Out, "Node %q drain strategy set\n", r.node.ID)
		r.printReplaced()
		for _, line := range stopsFirst {
			fmt.Fprintln(r.c.Out, line)
		}
		r.printPaused()
		return nil
	}
	now := time.Now()
	drain.Stamped(r.c.Out, now, "Ctrl-C to stop monitoring: will not cancel the node drain")
	drain.Stamped(r.c.Out, now, fmt.Sprintf("Node %q drain strategy set", r.node.ID))
	r.printReplaced()
	for _, line := range stopsFirst {
		drain.Stamped(r.c.Out, now, line)
	}
	return r.watch(drain.Follower{Node: r.node.ID, Drain: written.DrainID, SkipSystem: r.IgnoreSystem}, answer.Index)
}

// resume monitors the drain of a node, or judges its last one if it has ended. Both are one watch: the
// judgement does not depend on when it began.
func (r *drainRequest) resume(index uint64) error {
	if r.node.DrainStrategy == nil {
		fmt.Fprintln(r.c.Out, "No drain strategy set")
		last, err := r.lastDrain()
		if err != nil || last == nil {
			return err
		}
		follow := drain.FollowEnded(r.node, last)
		follow.SkipSystem = r.IgnoreSystem
		return r.watch(follow, 0) // nothing newer needs to happen
	}
	drain.Stamped(r.c.Out, time.Now(), fmt.Sprintf("Monitoring node %q: Ctrl-C to detach monitoring", r.node.ID))
	return r.watch(drain.Follower{Node: r.node.ID, Drain: r.node.DrainID, Strategy: r.node.DrainStrategy, SkipSystem: r.IgnoreSystem}, index)
}

// watch monitors a drain from an index.
func (r *drainRequest) watch(follow drain.Follower, index uint64) error {
	m := &drain.Monitor{API: r.c.API, Follow: follow, Index: index, Show: drain.NewLines(r.c.Out, r.c.Errs), Contact: cli.Contact{Patience: cli.MonitorPatience}}
	if cli.TerminalWidth(r.c.Out) > 0 && !r.plain {
		m.Show = drain.NewBar(r.c.Out)
	}
	err := m.Run(r.c.Ctx)
	defer r.c.Await(func() string { return "what the drain has left: " + cli.AnAnswer(r.c.API) })()
	if err == nil {
		err = r.printVolumesLeft(m)
	}
	if n := m.Follow.NotCopied(); n > 0 && (err == nil || err == drain.ExitVolumesLeft) {
		text := fmt.Sprintf("The data of %s on node %q was not copied when the drain ended", cli.Count(n, "allocation"), r.node.ID)
		drain.Stamped(r.c.Out, time.Now(), text+": nodedrain alloc status"+r.c.SameServers()+" ALLOC shows why")
		err = drain.ExitNotCopied
	}
	if err == cli.ExitInterrupted {
		r.interrupted(m)
		return err
	}
	if _, is := errors.AsType[cli.ExitCode](err); m.Follow.InUse() != "" && (err == nil || is) {
		fmt.Fprintln(r.c.Out, r.drainAgain())
		err = drain.ExitInUse
	}
	left, failed := m.Unconfirmed(r.c.Ctx)
	if failed != nil {
		return cli.Errorf("Error reading the record of the drain: %v", failed)
	}
	err = r.printUnconfirmed(left, err)
	if m.Follow.GaveUp && err == drain.ExitUnconfirmed {
		fmt.Fprintf(r.c.Out, "To watch them again: nodedrain node drain -monitor%s %s\n", r.c.SameServers(), r.node.ID)
		if id := left.Drain(); id != "" {
			fmt.Fprintf(r.c.Out, "To see what the drain did: nodedrain drain show%s %s\n", r.c.SameServers(), id)
		}
	}
	return err
}

// lastDrain returns the record of the node's last drain, or nil if the servers are of an older build and
// have no records.
func (r *drainRequest) lastDrain() (*wire.Drain, error) {
	report, _, err := r.c.API.NodeDrain(r.c.Ctx, r.node.ID, client.Query{})
	switch {
	case client.NotFound(err):
		return nil, nil
	case err != nil:
		return nil, cli.Errorf("Error reading the record of the drain: %v", err)
	case report.State == wire.StateNone:
		return nil, cli.Errorf("Node %q does not drain, and no record of a drain exists: there is nothing to monitor", r.node.ID)
	}
	return report.Drain, nil
}

// printUnconfirmed prints the allocations whose end nothing confirms, and what to do. If there are some, it
// replaces the exit code of the monitor, but no error with a text.
func (r *drainRequest) printUnconfirmed(left drain.Unconfirmed, err error) error {
	for _, line := range left.Lines() {
		drain.Stamped(r.c.Out, time.Now(), line)
	}
	if !left.Any() {
		return err
	}
	fmt.Fprintf(r.c.Out, "Nothing confirms that these allocations have ended. Their tasks may still run on node %q\n", r.node.ID)
	switch {
	case left.Reported() == 0:
	case left.Status != "":
		fmt.Fprintf(r.c.Out, "The status of the node is %s. If its client works, it reports when they have ended\n", left.Status)
	default:
		fmt.Fprintln(r.c.Out, "To confirm it, bring the node back: its client reports what has ended")
	}
	if id := left.Drain(); id != "" {
		fmt.Fprintf(r.c.Out, "If the machine is off, or no task of them runs: nodedrain drain confirm%s %s\n", r.c.SameServers(), id)
	}
	if _, is := errors.AsType[cli.ExitCode](err); err != nil && !is {
		return err
	}
	return drain.ExitUnconfirmed
}

// printVolumesLeft prints which volumes are still on the node after its drain. The error is nil if none is.
func (r *drainRequest) printVolumesLeft(m *drain.Monitor) error {
	left, err := m.VolumesLeft(r.c.Ctx)
	switch {
	case r.c.Ctx.Err() != nil:
		return cli.ExitInterrupted
	case err != nil:
		return cli.Errorf("Error reading the volumes on the node: %v", err)
	}
	for _, line := range left {
		drain.Stamped(r.c.Out, time.Now(), line)
	}
	if len(left) > 0 {
		return drain.ExitVolumesLeft
	}
	return nil
}

// interrupted prints what continues after the monitor was interrupted.
func (r *drainRequest) interrupted(m *drain.Monitor) {
	node := m.Follow.Node
	if m.Follow.DrainEnded {
		fmt.Fprintf(r.c.Out, "The drain of node %q has ended. %s still to stop: nodedrain node status%s %s\n",
			node, cli.Count(m.Follow.Left(), "allocation"), r.c.SameServers(), node)
		return
	}
	continues := "continues"
	if m.Follow.Paused() {
		continues = "is paused"
	}
	fmt.Fprintf(r.c.Out, "The drain of node %q %s. To watch it again: nodedrain node drain -monitor%s %s\n", node, continues, r.c.SameServers(), node)
	fmt.Fprintf(r.c.Out, "To cancel it: nodedrain node drain -disable%s %s\n", r.c.SameServers(), node)
}
