package main

import (
	"flag"
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

  Tells the servers of a cluster of one more: its name, and where it listens for the
  others. It must run there, and votes from then on. A server that is told to -join does
  this by itself; this is for one whose address has changed while nobody heard it.
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
	fmt.Fprintf(c.out, "Server %q is one of the cluster\n", about[0])
	return nil
}

// serverRemoveCommand is "nodedrain server remove".
type serverRemoveCommand struct{ operatorCommand }

func (c *serverRemoveCommand) Synopsis() string { return "Take a server away" }

func (c *serverRemoveCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain server remove [options] NAME

  Takes a server away from its cluster: it votes no more, and hears nothing more. This
  is for one that does not come back. The others must be most of the servers, or
  nothing can be decided.
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
	fmt.Fprintf(c.out, "Server %q is not one of the cluster any more\n", about[0])
	return nil
}

// flags are these flags alone.
func (f *connectFlags) flags(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	f.set(set)
	return set
}
