package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// serverMembersCommand is "nodedrain server members".
type serverMembersCommand struct{ operatorCommand }

// serverMembersFlags are its flags.
type serverMembersFlags struct {
	connectFlags
	outputFlags
}

func (f *serverMembersFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("server members", flag.ContinueOnError)
	f.connectFlags.set(set)
	f.outputFlags.set(set)
	return set
}

func (c *serverMembersCommand) Synopsis() string { return "List the servers" }

func (c *serverMembersCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain server members [options]

  Lists the servers of the cluster with their state, whether they vote, and the cluster
  versions each understands; then the cluster version. The cluster version rises by
  itself when every server understands a higher one. The command fails without a leader
  or a quorum.

Options:

` + outputHelp + "\n" + connectHelp)
}

func (c *serverMembersCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *serverMembersCommand) run(args []string) error {
	var f serverMembersFlags
	about, err := arguments(f.set(), "server members", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return misused("server members", "This command takes no arguments")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	servers, err := asked.RaftConfiguration(c.ctx)
	switch {
	case err != nil:
		return saidf("Error querying servers: %v", err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, servers)
	}
	memberTable(servers.Servers).write(c.out)
	fmt.Fprintf(c.out, "\nCluster version %d\n", servers.ClusterVersion)
	for _, line := range stateLines(servers.Servers) {
		fmt.Fprintln(c.out, line)
	}
	return nil
}

func memberTable(servers []wire.RaftServer) *table {
	t := newTable("Name", "Address", "State", "Voter", "Versions")
	for _, s := range servers {
		state := "follower"
		if s.Leader {
			state = "leader"
		}
		versions := "unknown"
		if s.MaxVersion > 0 {
			versions = fmt.Sprintf("%d to %d", s.MinVersion, s.MaxVersion)
		}
		t.row(s.ID, s.Address, state, fmt.Sprint(s.Voter), versions)
	}
	return t
}

// stateLines says which servers have another state than the others.
func stateLines(servers []wire.RaftServer) (lines []string) {
	for _, s := range servers {
		switch s.State {
		case string(httpapi.StateDiffers):
			lines = append(lines, fmt.Sprintf("Server %s has another state than the majority at index %d, and does not lead. "+
				"Stop it and run \"nodedrain server recover -discard\".", s.ID, s.StateIndex))
		case string(httpapi.StateUndecided):
			lines = append(lines, fmt.Sprintf("Server %s has a state at index %d that no majority has. Start the servers that are absent.", s.ID, s.StateIndex))
		}
	}
	return lines
}
