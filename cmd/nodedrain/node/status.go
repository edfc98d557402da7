package node

import (
	"flag"
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain node status".
func Status() *cli.Command {
	var f statusFlags
	return &cli.Command{
		Short: "List nodes, or show one node",
		Help: `
Usage: nodedrain node status [options] [NODE]

  Without NODE, lists all nodes. With NODE, shows the node's status, drain, resources
  and allocations, and its events, newest first. NODE is the node's name, its id
  or a prefix of the id.

Options of the list:

  -allocs           Show the number of running allocations of each node.
  -os               Show the operating system of each node.
  -quiet            Print only ids.
  -filter EXPR      List only nodes that match an expression over their fields, such
                    as 'Status == "ready"'.
  -per-page N       Number of nodes per page.
  -page-token ID    Token of the page to show, as printed by the previous page.

Options of a node:

  -self             Use the node of the agent at -address.
  -short            Do not show events and resources.

Options of both:

  -verbose          Show whole ids and more columns.
`,
		Connects: true, Formats: true, Flags: f.set,
		Args: cli.Arguments{Most: -1, Complete: cli.NodeIDs},
		Run:  func(c *cli.Call) error { return (&statusCommand{c}).run(&f) },
	}
}

type statusCommand struct{ *cli.Call }

// statusFlags are its flags.
type statusFlags struct {
	allocs, os, quiet, short, verbose, self bool
	filter, pageToken                       string
	perPage                                 int
}

func (f *statusFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.allocs, "allocs", false, "")
	set.BoolVar(&f.os, "os", false, "")
	set.BoolVar(&f.quiet, "quiet", false, "")
	set.BoolVar(&f.short, "short", false, "")
	set.BoolVar(&f.verbose, "verbose", false, "")
	set.BoolVar(&f.self, "self", false, "")
	set.StringVar(&f.filter, "filter", "", "")
	set.StringVar(&f.pageToken, "page-token", "", "")
	set.IntVar(&f.perPage, "per-page", 0, "")
}

func (c *statusCommand) run(f *statusFlags) error {
	if len(c.Args) > 1 || f.self && len(c.Args) == 1 {
		return c.UsageError("This command takes either one or no arguments")
	}
	api := c.API
	if len(c.Args) == 0 && !f.self {
		return c.list(api, f)
	}
	id, err := c.Named(api, c.Args)
	if err != nil {
		return err
	}
	return c.one(api, f, id)
}

// list lists nodes in the servers' order.
func (c *statusCommand) list(api *client.Client, f *statusFlags) error {
	stubs, answer, err := api.Nodes(c.Ctx, client.NodesQuery{OS: f.os, Query: client.Query{
		Filter: f.filter, PerPage: f.perPage, NextToken: f.pageToken,
	}})
	if err != nil {
		return cli.Errorf("Error querying node status: %v", err)
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
	t, err := c.listTable(api, f, stubs)
	if err != nil {
		return err
	}
	t.Write(c.Out)
	if answer.NextToken != "" {
		fmt.Fprintf(c.Out, "\nResults have been paginated. To get the next page run:\n\n%s -page-token %s\n",
			"nodedrain node status "+f.again(), answer.NextToken)
	}
	return nil
}

// again returns the flags that request the next page.
func (f *statusFlags) again() string {
	parts := []string{fmt.Sprintf("-per-page %d", f.perPage)}
	if f.filter != "" {
		parts = append(parts, fmt.Sprintf("-filter %q", f.filter))
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"-allocs", f.allocs}, {"-os", f.os}, {"-verbose", f.verbose}} {
		if flag.given {
			parts = append(parts, flag.name)
		}
	}
	return strings.Join(parts, " ")
}

func (c *statusCommand) listTable(api *client.Client, f *statusFlags, stubs []*wire.NodeListStub) (*cli.Table, error) {
	columns := []string{"ID", "Node Pool", "DC", "Name", "Class"}
	if f.os {
		columns = append(columns, "OS")
	}
	if f.verbose {
		columns = append(columns, "Address", "Version")
	}
	columns = append(columns, "Drain", "Eligibility", "Status")
	if f.allocs {
		columns = append(columns, "Running Allocs")
	}
	t := cli.NewTable(columns...)
	for _, n := range stubs {
		cells := []string{cli.ShortID(n.ID, f.verbose), n.NodePool, n.Datacenter, n.Name, n.NodeClass}
		if f.os {
			cells = append(cells, n.Attributes["os.name"])
		}
		if f.verbose {
			cells = append(cells, n.Address, n.Version)
		}
		cells = append(cells, fmt.Sprint(n.Drain), n.SchedulingEligibility, n.Status)
		if f.allocs {
			running, err := c.running(api, n.ID)
			if err != nil {
				return nil, err
			}
			cells = append(cells, fmt.Sprint(running))
		}
		t.Row(cells...)
	}
	return t, nil
}

// running counts the allocations that run on a node.
func (c *statusCommand) running(api *client.Client, node string) (n int, err error) {
	allocs, _, err := api.NodeAllocations(c.Ctx, node, client.Query{})
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

// Help is the help of the parent command.
const Help = `Usage: nodedrain node <command> [options]

  Takes nodes out of service and returns them to it, shows their status, and explains why
  a node has not drained yet. Except for "explain", the commands have the names, flags
  and messages of Nomad's commands.`
