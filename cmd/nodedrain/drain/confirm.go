package drain

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Confirm is "nodedrain drain confirm".
func Confirm() *cli.Command {
	var yes bool
	return &cli.Command{
		Short: "Confirm that no task of an ended drain runs on its node",
		Description: `
  Declares that the unconfirmed allocations of an ended drain have ended. These are
  allocations that the servers gave up as lost, and whose clients have not reported the
  end. Use it only if you are sure that the machine is off, or that no task of these
  allocations runs. A node that returns reports lost allocations by itself. The record of
  the drain keeps who confirmed it and when. Other records of the node that count the same
  allocations count them no longer, and name this drain. DRAIN is the id of the drain or a
  prefix of it.
`,
		Exits: `
  0   The drain is confirmed, or it counts no unconfirmed allocation.
  1   The request failed, the drain has not ended, or the user did not confirm it.
`,
		Args: "DRAIN", Connects: true,
		Options: cli.Options{cli.Flag(&yes, "yes", "Skip the confirmation.")},
		Run:     func(c *cli.Call) error { return confirm(c, c.Args[0], yes) },
	}
}

func confirm(c *cli.Call, prefix string, yes bool) error {
	d, err := findDrain(c, prefix)
	if err != nil {
		return err
	}
	left := UnconfirmedIn(d)
	node := fmt.Sprintf("%q (%s)", d.NodeName, cli.ShortID(d.NodeID, false))
	switch {
	case d.Outcome == string(cluster.OutcomeNone):
		return cli.Errorf("Drain %q of node %s has not ended: there is nothing to confirm", d.ID, node)
	case !left.Any():
		fmt.Fprintf(c.Out, "Drain %q of node %s counts no unconfirmed allocation: nothing has changed\n", d.ID, node)
		return nil
	}
	for _, line := range left.Lines() {
		fmt.Fprintln(c.Out, line)
	}
	fmt.Fprintf(c.Out, "This declares that %s of drain %q on node %s ended: the machine is off, or no task of them runs\n",
		cli.Count(d.Unconfirmed, "allocation"), d.ID, node)
	if !yes && c.Confirm(fmt.Sprintf("Are you sure that no task of them runs on node %s? [y/N]", node), "Cancelling drain confirmation") != nil {
		return cli.Error("The drain was not confirmed, and nothing has changed")
	}
	if _, _, err := c.API.ConfirmDrain(c.Ctx, d.ID); err != nil {
		return cli.Errorf("Error confirming drain: %v", err)
	}
	fmt.Fprintf(c.Out, "Drain %q confirmed\n", d.ID)
	return nil
}

// findDrain returns the drain with this id, or the only one whose id begins with it.
func findDrain(c *cli.Call, prefix string) (*wire.Drain, error) {
	if len(prefix) < cli.MinPrefix {
		return nil, cli.Error("Identifier must contain at least two characters.")
	}
	list, _, err := c.API.Drains(c.Ctx, client.Query{})
	if err != nil {
		return nil, cli.Errorf("Error querying drains: %v", err)
	}
	all := list.Recent
	for _, a := range list.Active {
		all = append(all, a.Drain)
	}
	var found []*wire.Drain
	for _, d := range all {
		if d.ID == prefix {
			return d, nil
		}
		if cli.HasPrefixFold(d.ID, prefix) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return nil, cli.Errorf("No drain(s) with prefix or id %q found", prefix)
	case 1:
		return found[0], nil
	}
	return nil, cli.Errorf("Prefix matched multiple drains\n\n%s", drainTable(found))
}

// drainTable lists the drains that match a prefix.
func drainTable(drains []*wire.Drain) *cli.Table {
	t := cli.NewTable("Drain", "Node", "Name", "Started", "Ended", "Outcome")
	for _, d := range drains {
		t.Row(d.ID, cli.ShortID(d.NodeID, false), d.NodeName, cli.Clock(d.Strategy.StartedAt), cli.TimeCell(d.EndedAt), OutcomeCell(d))
	}
	return t
}
