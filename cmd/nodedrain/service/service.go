package service

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Help is the help of the parent command.
const Help = `
  Shows services: the addresses of allocations that run and are healthy.`

// List is "nodedrain service list".
func List() *cli.Command {
	return &cli.Command{
		Short: "List services",
		Description: `
  Lists the services of the namespace that have an instance, and the tags of their
  instances. With -namespace '*' it lists those of all namespaces.
`,
		Connects: true, Formats: true, Run: list,
	}
}

func list(c *cli.Call) error {
	lists, _, err := client.Services(c.Ctx, c.API, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying services: %v", err)
	case c.Raw():
		return c.PrintRaw(lists)
	case len(lists) == 0:
		fmt.Fprintln(c.Out, "No services")
		return nil
	}
	t := cli.NewTable("Service Name", "Namespace", "Tags")
	for _, of := range lists {
		for _, s := range of.Services {
			t.Row(s.ServiceName, of.Namespace, tags(s.Tags))
		}
	}
	t.Write(c.Out)
	return nil
}

// Info is "nodedrain service info".
func Info() *cli.Command {
	var filter string
	var verbose bool
	return &cli.Command{
		Short: "Show the instances of a service",
		Description: `
  Lists the instances of a service: the address, the job, the node and the allocation of
  each. An instance is listed while its allocation runs and the servers do not stop it. If
  a check of the service decides about health, the allocation must also be healthy.
`,
		Args: "NAME", Connects: true, Formats: true,
		Options: cli.Options{
			cli.Flag(&filter, "filter EXPR", "List only those that match an expression over their fields, such as '\"blue\" in Tags'."),
			cli.Flag(&verbose, "verbose", "Show whole ids and more columns."),
		},
		Run: func(c *cli.Call) error { return info(c, filter, verbose) },
	}
}

func info(c *cli.Call, filter string, verbose bool) error {
	instances, _, err := client.Service(c.Ctx, c.API, c.Args[0], client.Query{Filter: filter})
	switch {
	case err != nil:
		return cli.Errorf("Error querying the service: %v", err)
	case c.Raw():
		return c.PrintRaw(instances)
	case len(instances) == 0:
		c.WarnUnmatched(filter, "instance")
		fmt.Fprintf(c.Out, "No instances of service %q\n", c.Args[0])
		return nil
	}
	columns := []string{"Job ID", "Address", "Tags", "Node ID", "Alloc ID"}
	if verbose {
		columns = append(columns, "Datacenter", "ID")
	}
	t := cli.NewTable(columns...)
	for _, i := range instances {
		row := []string{cli.JobName(i.Namespace, i.JobID), address(i), tags(i.Tags), cli.ShortID(i.NodeID, verbose), cli.ShortID(i.AllocID, verbose)}
		if verbose {
			row = append(row, i.Datacenter, i.ID)
		}
		t.Row(row...)
	}
	t.Write(c.Out)
	return nil
}

// address is that of an instance, without a port if it has none.
func address(i *wire.ServiceRegistration) string {
	if i.Port == 0 {
		return i.Address
	}
	return net.JoinHostPort(i.Address, strconv.Itoa(i.Port))
}

func tags(all []string) string { return "[" + strings.Join(all, ",") + "]" }
