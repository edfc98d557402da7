package dev

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// URL is the base URL of the HTTP API.
func (c *Cluster) URL() string { return "http://" + c.server.HTTPAddr() }

// TokenFile is the path of the file with the token.
func (c *Cluster) TokenFile() string { return c.dir.file(tokenFile) }

// wanted is the number of tasks of jobs.
func wanted(jobs []*cluster.Job) (n int) {
	for _, j := range jobs {
		for _, g := range j.TaskGroups {
			n += g.Count * len(g.Tasks)
		}
	}
	return n
}

// tasks returns the running allocations of the example jobs, which have one task each, by their names.
func (c *Cluster) tasks() (running []*cluster.Allocation) {
	state := c.server.Server().Store().Snapshot()
	for _, n := range c.nodes {
		for alloc := range state.AllocsByNode(n.ID()) {
			if alloc.ClientStatus == cluster.ClientRunning && alloc.DesiredStatus == cluster.DesiredRun {
				running = append(running, alloc)
			}
		}
	}
	slices.SortFunc(running, func(a, b *cluster.Allocation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return running
}

// shortID is how many characters of an id people type.
const shortID = 8

// WriteGuide writes what runs and what to try.
func (c *Cluster) WriteGuide(w io.Writer) error {
	var b strings.Builder
	tasks := c.tasks()
	size := fmt.Sprintf("1 server, %s, %d tasks", cli.Count(len(c.nodes), "node"), len(tasks))
	switch {
	case c.config.Simulated:
		fmt.Fprintf(&b, "A cluster of simulated tasks: %s without processes\n\n", size)
	case c.config.User != "":
		fmt.Fprintf(&b, "A cluster of real processes: %s that run as user %s\n\n", size, c.config.User)
	default:
		fmt.Fprintf(&b, "A cluster of real processes: %s that run as this user\n\n", size)
	}
	for i, n := range c.nodes {
		var names []string
		for _, alloc := range tasks {
			if alloc.NodeID == n.ID() {
				names = append(names, fmt.Sprintf("%s=%.*s", alloc.Name, shortID, alloc.ID))
			}
		}
		fmt.Fprintf(&b, "  %s%d  %.*s  %s\n", nodePrefix, i+1, shortID, n.ID(), strings.Join(names, " "))
	}
	b.WriteString("\nIn a second terminal:\n\n")
	fmt.Fprintf(&b, "  export NOMAD_ADDR=%s NOMAD_TOKEN=$(cat %s)\n", c.URL(), c.TokenFile())
	if subject := example(tasks); subject != nil {
		fmt.Fprintf(&b, "  nodedrain alloc logs -f %.*s &\n", shortID, subject.ID)
		fmt.Fprintf(&b, "  nodedrain node drain -enable -yes -deadline 2m %.*s\n", shortID, subject.NodeID)
		fmt.Fprintf(&b, "  nodedrain node explain %.*s          # while it drains, in a third\n", shortID, subject.NodeID)
	}
	fmt.Fprintf(&b, "\nThe logs of server and clients are in %s. Ctrl-C ends all of it.\n", c.dir.path)
	for _, limit := range c.limits {
		fmt.Fprintf(&b, "%s\n", limit)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// example returns the allocation whose node is drained first: one of the first service.
func example(tasks []*cluster.Allocation) *cluster.Allocation {
	for _, alloc := range tasks {
		if alloc.JobID == "web" {
			return alloc
		}
	}
	return nil
}
