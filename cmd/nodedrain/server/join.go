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
		About: `
  Adds a server to a cluster. NAME is its name, ADDRESS the address on which it listens
  for other servers. The server must run there, and becomes a voter. A server that is
  started with -join adds itself. Use this command if the address of a server changed
  while the server could not report it.
`,
		Args: "NAME ADDRESS", Connects: true,
		Run: func(c *cli.Call) error {
			if err := c.API.Join(c.Ctx, wire.JoinRequest{ID: c.Args[0], Address: c.Args[1]}); err != nil {
				return cli.Errorf("Error joining: %v", err)
			}
			fmt.Fprintf(c.Out, "Server %q is a member of the cluster\n", c.Args[0])
			return nil
		},
	}
}

// Remove is "nodedrain server remove".
func Remove() *cli.Command {
	return &cli.Command{
		Short: "Remove a server",
		About: `
  Removes a server from its cluster: it no longer votes and gets no more entries. Use
  this command for a server that will not return. A majority of the servers must be
  running, because the removal is a raft entry.
`,
		Args: "NAME", Connects: true,
		Run: func(c *cli.Call) error {
			if err := c.API.Remove(c.Ctx, c.Args[0]); err != nil {
				return cli.Errorf("Error removing server: %v", err)
			}
			fmt.Fprintf(c.Out, "Server %q is no longer a member of the cluster\n", c.Args[0])
			return nil
		},
	}
}
