package server

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Members is "nodedrain server members".
func Members() *cli.Command {
	return &cli.Command{
		Short: "List the servers",
		Description: `
  Lists the servers of the cluster: whether each answers, leads and votes, the start of
  its process, how many entries of the leader it has not applied, its build, and the
  cluster versions that it understands. Then it shows the cluster version. The leader
  raises it when every server understands a higher one.

  The server at -address contacts the others. The command works without a leader. It then
  shows how many voters answer and how many a leader needs. For a server that does not
  answer, it shows the time since the leader's last contact with it. A new leader counts
  from its election. Without a leader, only the contact with the last leader is known.
`,
		Connects: true, Formats: true, Run: members,
	}
}

func members(c *cli.Call) error {
	servers, err := c.API.Servers().RaftConfiguration(c.Ctx)
	switch {
	case err != nil:
		return cli.Errorf("Error querying servers: %v", err)
	case c.Raw():
		return c.PrintRaw(servers)
	}
	memberTable(servers.Servers, time.Now()).Write(c.Out)
	if line := leaderless(servers.Servers); line != "" {
		fmt.Fprintln(c.Out, "\n"+line)
	}
	fmt.Fprintf(c.Out, "\nCluster version %d\n", servers.ClusterVersion)
	for _, line := range stateLines(servers.Servers) {
		fmt.Fprintln(c.Out, line)
	}
	return nil
}

func memberTable(servers []wire.RaftServer, now time.Time) *cli.Table {
	t := cli.NewTable("Name", "Address", "State", "Voter", "Started", "Behind", "Build", "Versions")
	for i := range servers {
		s := &servers[i]
		state, started, behind, build, versions := "follower", "unknown", "unknown", "unknown", "unknown"
		switch {
		case !s.Alive:
			state = "no answer, since unknown"
			if !s.LastContact.IsZero() {
				state = "no answer for " + cli.Rough(now.Sub(s.LastContact.Time))
			}
		case s.Leader:
			state = "leader"
		}
		if s.Alive && s.AppliedIndex > 0 {
			started, behind, build = cli.Rough(now.Sub(s.Started.Time))+" ago", fmt.Sprint(s.Behind), s.Build
		}
		if s.MaxVersion > 0 {
			versions = fmt.Sprintf("%d to %d", s.MinVersion, s.MaxVersion)
		}
		t.Row(s.ID, s.Address, state, fmt.Sprint(s.Voter), started, behind, build, versions)
	}
	return t
}

// leaderless returns what a cluster without a leader lacks, or empty if a leader answers.
func leaderless(servers []wire.RaftServer) string {
	voters, alive := 0, 0
	for i := range servers {
		switch s := &servers[i]; {
		case s.Leader && s.Alive:
			return ""
		case s.Voter && s.Alive:
			alive++
			fallthrough
		case s.Voter:
			voters++
		}
	}
	needed := voters/2 + 1
	text := fmt.Sprintf("No leader: %d of %s answer, and a leader needs %d.", alive, cli.Count(voters, "voter"), needed)
	if alive >= needed {
		return text + " They elect one soon if they reach each other."
	}
	return text + " Start the servers that do not answer."
}

// stateLines returns which servers have another state than the others.
func stateLines(servers []wire.RaftServer) (lines []string) {
	for _, s := range servers {
		switch s.State {
		case string(httpapi.StateDiffers):
			lines = append(lines, fmt.Sprintf("Server %s has another state than the majority at index %d, and does not lead. "+
				"Stop it and run \"nodedrain server recover -discard\".", s.ID, s.StateIndex))
		case string(httpapi.StateUndecided):
			lines = append(lines, fmt.Sprintf("Server %s has a state at index %d that no majority has. Start the servers that are down.", s.ID, s.StateIndex))
		}
	}
	return lines
}

// Join is "nodedrain server join".
func Join() *cli.Command {
	return &cli.Command{
		Short: "Add a server",
		Description: `
  Adds a server to a cluster. NAME is its name, ADDRESS the address on which it listens
  for other servers. The server must run there, and becomes a voter. A server that is
  started with -join adds itself. Use this command if the address of a server changed
  while the server could not report it.
`,
		Args: "NAME ADDRESS", Connects: true,
		Run: func(c *cli.Call) error {
			if err := c.API.Servers().Join(c.Ctx, wire.JoinRequest{ID: c.Args[0], Address: c.Args[1]}); err != nil {
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
		Description: `
  Removes a server from its cluster: it no longer votes and gets no more entries. Use
  this command for a server that will not return. A majority of the servers must be
  running, because the removal is a raft entry.
`,
		Args: "NAME", Connects: true,
		Run: func(c *cli.Call) error {
			if err := c.API.Servers().Remove(c.Ctx, c.Args[0]); err != nil {
				return cli.Errorf("Error removing server: %v", err)
			}
			fmt.Fprintf(c.Out, "Server %q is no longer a member of the cluster\n", c.Args[0])
			return nil
		},
	}
}
