package server

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// JoinCommand is "nodedrain server join".
type JoinCommand struct{ cli.Base }

func (c *JoinCommand) Synopsis() string { return "Add a server" }

func (c *JoinCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain server join [options] NAME ADDRESS

  Adds a server to a cluster. NAME is its name, ADDRESS the address on which it listens
  for other servers. The server must run there, and becomes a voter. A server that is
  started with -join adds itself. Use this command if the address of a server changed
  while the server could not report it.
` + cli.ConnectHelp)
}

func (c *JoinCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *JoinCommand) run(args []string) error {
	var f cli.ConnectFlags
	about, err := cli.ParseArguments(f.Flags("server join"), "server join", args)
	switch {
	case err != nil:
		return err
	case len(about) != 2:
		return cli.UsageError("server join", "This command takes a name and an address")
	}
	asked, err := c.Connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	if err := asked.Join(c.Ctx, wire.JoinRequest{ID: about[0], Address: about[1]}); err != nil {
		return cli.Errorf("Error joining: %v", err)
	}
	fmt.Fprintf(c.Out, "Server %q is a member of the cluster\n", about[0])
	return nil
}

// RemoveCommand is "nodedrain server remove".
type RemoveCommand struct{ cli.Base }

func (c *RemoveCommand) Synopsis() string { return "Remove a server" }

func (c *RemoveCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain server remove [options] NAME

  Removes a server from its cluster: it no longer votes and gets no more entries. Use
  this command for a server that will not return. A majority of the servers must be
  running, because the removal is a raft entry.
` + cli.ConnectHelp)
}

func (c *RemoveCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *RemoveCommand) run(args []string) error {
	var f cli.ConnectFlags
	about, err := cli.ParseArguments(f.Flags("server remove"), "server remove", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return cli.UsageError("server remove", "This command takes the name of a server")
	}
	asked, err := c.Connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	if err := asked.Remove(c.Ctx, about[0]); err != nil {
		return cli.Errorf("Error removing server: %v", err)
	}
	fmt.Fprintf(c.Out, "Server %q is no longer a member of the cluster\n", about[0])
	return nil
}
