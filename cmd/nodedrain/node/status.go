package node

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Help is the help of the parent command.
const Help = `
  Takes nodes out of service and returns them to it, shows their status, and explains why
  a node has not drained yet. Except for "explain", the commands have the names, flags
  and messages of Nomad's commands.`

// Status is "nodedrain node status".
func Status() *cli.Command {
	var f statusFlags
	return &cli.Command{
		Short: "List nodes, or show one node",
		Description: `
  Without NODE, lists all nodes. With NODE, shows the node's status, drain, resources
  and allocations, and its events, newest first. NODE is the node's name, its id
  or a prefix of the id.
`,
		Args: "[NODE]", Connects: true, Formats: true, Run: f.run,
		Options: cli.Options{
			cli.Heading("Options of the list"),
			cli.Flag(&f.allocs, "allocs", "Show the number of running allocations of each node."),
			cli.Flag(&f.os, "os", "Show the operating system of each node."),
			cli.Flag(&f.quiet, "quiet", "Print only ids."),
			cli.Flag(&f.filter, "filter EXPR", `List only nodes that match an expression over their fields, such as 'Status == "ready"'.`),
			cli.Flag(&f.perPage, "per-page N", "Number of nodes per page."),
			cli.Flag(&f.pageToken, "page-token ID", "Token of the page to show, as printed by the previous page."),
			cli.Heading("Options of a node"),
			selfFlag(&f.self),
			cli.Flag(&f.short, "short", "Do not show events and resources."),
			cli.Heading("Options of both"),
			cli.Flag(&f.verbose, "verbose", "Show whole ids and more columns."),
		},
	}
}

// statusFlags are its flags.
type statusFlags struct {
	allocs, os, quiet, short, verbose, self bool
	filter, pageToken                       string
	perPage                                 int
}

func (f *statusFlags) run(c *cli.Call) error {
	if f.self && len(c.Args) == 1 {
		return c.UsageError("This command takes either one or no arguments")
	}
	if len(c.Args) == 0 && !f.self {
		return f.list(c)
	}
	id, err := c.Named()
	if err != nil {
		return err
	}
	return f.show(c, id)
}

// list lists nodes in the servers' order.
func (f *statusFlags) list(c *cli.Call) error {
	stubs, answer, err := c.API.Nodes(c.Ctx, client.NodesQuery{OS: f.os, Query: client.Query{
		Filter: f.filter, PerPage: f.perPage, NextToken: f.pageToken,
	}})
	if err != nil {
		return cli.Errorf("Error querying node status: %v", err)
	}
	if len(stubs) == 0 {
		c.WarnUnmatched(f.filter, "node")
	}
	switch {
	case c.Raw():
		return c.PrintRaw(stubs)
	case f.quiet:
		for _, n := range stubs {
			fmt.Fprintln(c.Out, n.ID)
		}
		return nil
	case len(stubs) == 0:
		return nil
	}
	t, err := f.listTable(c, stubs)
	if err != nil {
		return err
	}
	t.Write(c.Out)
	if answer.NextToken != "" {
		fmt.Fprintf(c.Out, "\nResults have been paginated. To get the next page run:\n\n%s -page-token %s\n",
			"nodedrain node status "+f.samePages(), answer.NextToken)
	}
	return nil
}

// samePages returns the flags that request pages of the same list.
func (f *statusFlags) samePages() string {
	parts := []string{fmt.Sprintf("-per-page %d", f.perPage)}
	if f.filter != "" {
		parts = append(parts, fmt.Sprintf("-filter %q", f.filter))
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"-allocs", f.allocs}, {"-os", f.os}, {"-verbose", f.verbose}} {
		if flag.set {
			parts = append(parts, flag.name)
		}
	}
	return strings.Join(parts, " ")
}

func (f *statusFlags) listTable(c *cli.Call, stubs []*wire.NodeListStub) (*cli.Table, error) {
	t := cli.NewTable("ID", "Node Pool", "DC", "Name", "Class", cli.If(f.os, "OS"), cli.If(f.verbose, "Address"), cli.If(f.verbose, "Version"),
		"Drain", "Eligibility", "Status", cli.If(f.allocs, "Running Allocs"))
	for _, n := range stubs {
		allocs := 0
		if f.allocs {
			var err error
			if allocs, err = running(c, n.ID); err != nil {
				return nil, err
			}
		}
		t.Row(cli.ShortID(n.ID, f.verbose), n.NodePool, n.Datacenter, n.Name, n.NodeClass, n.Attributes["os.name"], n.Address, n.Version,
			fmt.Sprint(n.Drain), n.SchedulingEligibility, n.Status, fmt.Sprint(allocs))
	}
	return t, nil
}

// running counts the allocations that run on a node.
func running(c *cli.Call, node string) (n int, err error) {
	allocs, _, err := c.API.NodeAllocations(c.Ctx, node, client.Query{})
	if err != nil {
		return 0, cli.Errorf("Error querying node allocations: %v", err)
	}
	for _, a := range allocs {
		if a.ClientStatus == string(cluster.ClientRunning) {
			n++
		}
	}
	return n, nil
}
