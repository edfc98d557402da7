package main

import (
	"context"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

func TestClients_mistakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"now":                "This command takes no arguments",
		"-nodes 0":           "-nodes is 0 and must be above 0",
		"-log-level loud":    `-log-level is "loud" and must be`,
		"-servers a,":        `"a," has an empty item`,
		"-address ftp://a":   "invalid address 'ftp://a'",
		"-colour":            "flag provided but not defined: -colour",
		"-servers http://,b": "invalid address 'http://'",
	} {
		code, out, errs := command(t.Context(), "clients "+line)
		must.One(t, code, must.Sprint(line))
		must.Eq(t, "", out)
		must.StrContains(t, errs, want)
	}
}

// Simulated clients run the allocations placed on them. After a restart they are the same nodes.
func TestClients(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	for range 2 {
		ctx, end := context.WithCancel(ctx)
		var told string
		code, _, errs := watched(ctx, c, "clients -nodes 1 -name mine -class general", `" is registered: mine-1`, func() {
			told = "registered"
			go func() {
				defer end()
				_ = c.await(ctx, func() (bool, error) { return runsOn(c, "mine-1") > 0, nil })
			}()
		})
		must.Zero(t, code, must.Sprint(errs))
		must.Eq(t, "registered", told)
		must.Positive(t, runsOn(c, "mine-1"))
	}
	nodes, _, err := c.asked.Nodes(ctx, client.NodesQuery{Query: client.Query{Filter: `Name == "mine-1"`}})
	must.NoError(t, err)
	must.SliceLen(t, 1, nodes)
	must.False(t, strings.Contains(nodes[0].ID, "mine"))
}

// runsOn counts the allocations that run on a node.
func runsOn(c *scriptCluster, name string) (n int) {
	state := c.Server().Store().Snapshot()
	for a := range state.Allocs() {
		if node := state.Node(a.NodeID); node != nil && node.Name == name && a.ClientStatus == cluster.ClientRunning {
			n++
		}
	}
	return n
}
