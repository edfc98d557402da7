package main

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// serverJoinCommand is "nodedrain server join".
type serverJoinCommand struct{ operatorCommand }

func (c *serverJoinCommand) Synopsis() string { return "Add a server" }

func (c *serverJoinCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain server join [options] NAME ADDRESS

  Adds a server to a cluster. NAME is its name, ADDRESS the address on which it listens
  for other servers. The server must run there, and becomes a voter. A server that is
  started with -join adds itself. Use this command if the address of a server changed
  while the server could not report it.
` + connectHelp)
}

func (c *serverJoinCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *serverJoinCommand) run(args []string) error {
	var f connectFlags
	about, err := arguments(f.flags("server join"), "server join", args)
	switch {
	case err != nil:
		return err
	case len(about) != 2:
		return misused("server join", "This command takes a name and an address")
	}
	asked, err := c.connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	if err := asked.Join(c.ctx, wire.JoinRequest{ID: about[0], Address: about[1]}); err != nil {
		return saidf("Error joining: %v", err)
	}
	fmt.Fprintf(c.out, "Server %q is a member of the cluster\n", about[0])
	return nil
}

// serverRemoveCommand is "nodedrain server remove".
type serverRemoveCommand struct{ operatorCommand }

func (c *serverRemoveCommand) Synopsis() string { return "Remove a server" }

func (c *serverRemoveCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain server remove [options] NAME

  Removes a server from its cluster: it no longer votes and gets no more entries. Use
  this command for a server that will not return. A majority of the servers must be
  running, because the removal is a raft entry.
` + connectHelp)
}

func (c *serverRemoveCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *serverRemoveCommand) run(args []string) error {
	var f connectFlags
	about, err := arguments(f.flags("server remove"), "server remove", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return misused("server remove", "This command takes the name of a server")
	}
	asked, err := c.connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	if err := asked.Remove(c.ctx, about[0]); err != nil {
		return saidf("Error removing server: %v", err)
	}
	fmt.Fprintf(c.out, "Server %q is no longer a member of the cluster\n", about[0])
	return nil
}
