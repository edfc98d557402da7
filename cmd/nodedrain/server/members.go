package server

import (
	"fmt"
	"slices"
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

  The server at -address contacts the others. If that server has no leader, the command
  uses the next address. If no address has a leader, it shows how many voters answer the
  last one and how many a leader needs. For a server that does not answer, it shows the
  time since the leader's last contact with it. A new leader counts from its election.
  Without a leader, only the contact with the last leader is known.
`,
		Connects: true, Formats: true, Run: members,
	}
}

func members(c *cli.Call) error {
	servers, err := readServers(c)
	switch {
	case err != nil:
		return cli.Errorf("Error querying servers: %v", err)
	case c.Raw():
		return c.PrintRaw(servers)
	}
	memberTable(servers, time.Now()).Write(c.Out)
	if unsurveyed(servers) {
		fmt.Fprintln(c.Out, "\nThe server that answered has an older build, which does not report whether the others answer. Use -address of an upgraded server.")
	}
	if line := leaderless(servers); line != "" {
		fmt.Fprintln(c.Out, "\n"+line)
	}
	fmt.Fprintf(c.Out, "\nCluster version %d\n", servers.ClusterVersion)
	for _, line := range stateLines(servers.Servers) {
		fmt.Fprintln(c.Out, line)
	}
	return nil
}

// readServers reads the servers from the first address whose server has a leader: one that is cut off reports
// the others as dead. Without a leader anywhere the last answer counts.
func readServers(c *cli.Call) (servers *wire.RaftConfiguration, err error) {
	for tried := []string{}; !slices.Contains(tried, c.API.Address()); {
		tried = append(tried, c.API.Address()) // an answer without a leader changes the address
		found, err := c.API.Servers().RaftConfiguration(c.Ctx)
		switch {
		case err != nil && servers == nil:
			return nil, err
		case err != nil:
			return servers, nil
		}
		if servers = found; leaderless(servers) == "" {
			break
		}
	}
	return servers, nil
}

// unsurveyed reports whether the server that answered is of an older build, which contacts no others. A newer one
// always answers itself.
func unsurveyed(servers *wire.RaftConfiguration) bool {
	return servers.Cluster == "" && !slices.ContainsFunc(servers.Servers, func(s wire.RaftServer) bool { return s.Alive })
}

func memberTable(servers *wire.RaftConfiguration, now time.Time) *cli.Table {
	old := unsurveyed(servers)
	t := cli.NewTable("Name", "Address", "State", "Voter", "Started", "Behind", "Build", "Versions")
	for i := range servers.Servers {
		s := &servers.Servers[i]
		state, started, behind, build, versions := "follower", "unknown", "unknown", "unknown", "unknown"
		switch {
		case old && !s.Leader:
			state = "unknown"
		case !old && !s.Alive:
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

// leaderless returns what the server that answered lacks if it has no leader, otherwise empty. Other servers may
// have one.
func leaderless(servers *wire.RaftConfiguration) string {
	voters, alive, old := 0, 0, unsurveyed(servers)
	for i := range servers.Servers {
		switch s := &servers.Servers[i]; {
		case s.Leader && (s.Alive || old):
			return ""
		case s.Voter && s.Alive:
			alive++
			fallthrough
		case s.Voter:
			voters++
		}
	}
	needed := voters/2 + 1
	if old {
		return "This server has no leader."
	}
	text := fmt.Sprintf("This server has no leader: it reaches %d of %s, and a leader needs %d.", alive, cli.Count(voters, "voter"), needed)
	if alive >= needed {
		return text + " They elect one soon if they reach each other."
	}
	return text + " Start the servers that do not answer. If they run, this one is cut off: use -address of another server."
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
	var yes bool
	return &cli.Command{
		Short: "Remove a server",
		Description: `
  Removes a server from its cluster: it no longer votes and gets no more entries. Use
  this command for a server that will not return. A majority of the servers must be
  running, because the removal is a raft entry. The command shows how many voters remain
  and how many failures they tolerate, and requires a confirmation.
`,
		Args: "NAME", Connects: true,
		Options: cli.Options{cli.Flag(&yes, "yes", "Skip the confirmation.")},
		Run: func(c *cli.Call) error {
			if !yes {
				if err := confirmRemoval(c, c.Args[0]); err != nil {
					return err
				}
			}
			if err := c.API.Servers().Remove(c.Ctx, c.Args[0]); err != nil {
				return cli.Errorf("Error removing server: %v", err)
			}
			fmt.Fprintf(c.Out, "Server %q is no longer a member of the cluster\n", c.Args[0])
			return nil
		},
	}
}

// confirmRemoval shows what remains without a server, and requires an answer. A removal that the servers refuse
// needs none.
func confirmRemoval(c *cli.Call, name string) error {
	servers, err := readServers(c)
	if err != nil {
		return cli.Errorf("Error querying servers: %v", err)
	}
	is := func(s wire.RaftServer) bool { return s.ID == name }
	if !slices.ContainsFunc(servers.Servers, is) || len(servers.Servers) == 1 {
		return nil
	}
	fmt.Fprintln(c.Out, removalText(servers, name))
	return c.Confirm(fmt.Sprintf("Remove server %q from the cluster? [y/N]", name), "Cancelling server removal")
}

// removalText describes a server and the voters that remain without it.
func removalText(servers *wire.RaftConfiguration, name string) string {
	text := fmt.Sprintf("Server %q", name)
	voters, alive := 0, 0
	for _, s := range servers.Servers {
		switch {
		case s.ID == name && s.Leader && s.Alive:
			text += " leads"
		case s.ID == name && s.Alive:
			text += " answers"
		case s.ID == name && !unsurveyed(servers):
			text += " does not answer"
		case s.ID != name && s.Voter:
			voters++
			if s.Alive {
				alive++
			}
		}
	}
	needed := voters/2 + 1
	if unsurveyed(servers) {
		return fmt.Sprintf("%s: without it the cluster has %s. If all of them run, it tolerates %s.",
			text, cli.Count(voters, "voter"), cli.Count(voters-needed, "failure"))
	}
	text += fmt.Sprintf(". Without it the cluster has %s, %d of them running", cli.Count(voters, "voter"), alive)
	if alive < needed {
		return fmt.Sprintf("%s. It needs %d, so it would have no leader.", text, needed)
	}
	return fmt.Sprintf("%s. It then tolerates %s.", text, cli.Count(alive-needed, "failure"))
}
