package server

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Join is "nodedrain server join".
func Join() *cli.Command {
	return &cli.Command{
		Short: "Add a server",
		Help: `
Usage: nodedrain server join [options] NAME ADDRESS

  Adds a server to a cluster. NAME is its name, ADDRESS the address on which it listens
  for other servers. The server must run there, and becomes a voter. A server that is
  started with -join adds itself. Use this command if the address of a server changed
  while the server could not report it.
`,
		Connects: true,
		Args:     cli.Arguments{Least: 2, Most: 2, Usage: "This command takes a name and an address"},
		Run:      func(c *cli.Call) error { return (&joinCommand{c}).run() },
	}
}

type joinCommand struct{ *cli.Call }

func (c *joinCommand) run() error {
	api := c.API
	if err := api.Join(c.Ctx, wire.JoinRequest{ID: c.Args[0], Address: c.Args[1]}); err != nil {
		return cli.Errorf("Error joining: %v", err)
	}
	fmt.Fprintf(c.Out, "Server %q is a member of the cluster\n", c.Args[0])
	return nil
}

// Remove is "nodedrain server remove".
func Remove() *cli.Command {
	return &cli.Command{
		Short: "Remove a server",
		Help: `
Usage: nodedrain server remove [options] NAME

  Removes a server from its cluster: it no longer votes and gets no more entries. Use
  this command for a server that will not return. A majority of the servers must be
  running, because the removal is a raft entry.
`,
		Connects: true,
		Args:     cli.Arguments{Least: 1, Most: 1, Usage: "This command takes the name of a server"},
		Run:      func(c *cli.Call) error { return (&removeCommand{c}).run() },
	}
}

type removeCommand struct{ *cli.Call }

func (c *removeCommand) run() error {
	api := c.API
	if err := api.Remove(c.Ctx, c.Args[0]); err != nil {
		return cli.Errorf("Error removing server: %v", err)
	}
	fmt.Fprintf(c.Out, "Server %q is no longer a member of the cluster\n", c.Args[0])
	return nil
}
