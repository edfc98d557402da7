package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// Mistakes in the flags of dev and commands of earlier builds are refused.
func TestDev_mistakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"dev now":                           "This command takes no arguments",
		"dev -nodes 0":                      "-nodes is 0 and must be above 0",
		"dev -servers http://a":             "-servers needs -simulated",
		"dev -simulated -name a":            "-name and -class need -servers",
		"dev -simulated -servers a -dir d":  "-servers and -dir are mutually exclusive",
		"dev -simulated -servers a,":        `"a," has an empty item`,
		"dev -simulated -servers ftp://a":   "invalid address 'ftp://a'",
		"dev -colour":                       "flag provided but not defined: -colour",
		"dev -simulated -servers http://,b": "invalid address 'http://'",
		"demo now":                          "This command takes no arguments",
		"clients -nodes 3":                  `nodedrain has no command "clients" any more: "nodedrain dev -simulated -servers URLS"`,
		"server -dev":                       `flag provided but not defined: -dev any more: "nodedrain dev -simulated"`,
		"server -data-dir x -clients 3":     `"nodedrain dev -simulated"`,
		"demo -real":                        `flag provided but not defined: -real any more: "nodedrain dev" runs real tasks`,
		"demo -without":                     "give a job a max_parallel of its count",
	} {
		code, out, errs := command(t.Context(), line)
		must.Positive(t, code, must.Sprint(line))
		must.Eq(t, "", out)
		must.StrContains(t, errs, want)
	}
}

// Simulated clients of running servers run the allocations placed on them. After a restart they are the
// same nodes.
func TestDev_joinsServers(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	for range 2 {
		ctx, end := context.WithCancel(ctx)
		registered := false
		line := "dev -simulated -servers " + c.api.Address() + " -nodes 1 -name mine -class general"
		code, _, errs := watched(ctx, c, line, `" is registered: mine-1`, func() {
			registered = true
			go func() {
				defer end()
				_ = c.await(ctx, func() (bool, error) { return runsOn(c, "mine-1") > 0, nil })
			}()
		})
		must.Zero(t, code, must.Sprint(errs))
		must.True(t, registered)
		must.Positive(t, runsOn(c, "mine-1"))
	}
	nodes, _, err := c.api.Nodes(ctx, client.NodesQuery{Query: client.Query{Filter: `Name == "mine-1"`}})
	must.NoError(t, err)
	must.SliceLen(t, 1, nodes)
	must.False(t, strings.Contains(nodes[0].ID, "mine"))
}

// A cluster of simulated nodes runs the example jobs, and leaves no directory.
func TestDev_simulated(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	must.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	ctx, end := context.WithTimeout(t.Context(), scriptPatience)
	defer end()
	out := &watching{words: "Ctrl-C ends all of it.", do: end}
	var errs strings.Builder
	code := run(ctx, []string{"dev", "-simulated", "-dir", dir, "-addr", "127.0.0.1:0", "-nodes", "3"}, cli.Stdio{
		In: strings.NewReader(""), Out: out, Errs: &errs, Getenv: func(string) string { return "" },
	})
	must.Zero(t, code, must.Sprint(errs.String()))
	must.StrContains(t, out.String(), "A cluster of simulated nodes: 1 server, 3 nodes, 7 tasks that no process runs")
	must.StrContains(t, out.String(), "nodedrain node drain -enable -yes -deadline 2m ")
	_, err := os.Stat(dir)
	must.ErrorIs(t, err, os.ErrNotExist)
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
