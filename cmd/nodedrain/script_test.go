package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
)

// The scripts in testdata/script hold the operators' commands. Each script has its own server in
// this process.

// TestMain runs the tests, or the command.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "nodedrain" { // as that, the test binary is the command
		freshmachine.Enter()
	}
	testscript.Main(m, map[string]func(){"nodedrain": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       clitest.Rewrite(),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await":    awaitInScript,
			"api":      requestInScript,
			"register": registerInScript,
		},
	})
}

// The scripts in testdata/sim run "nodedrain sim", which needs no server.
//
//race:skip the swarm's tests run worlds in parallel
func TestSimScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/sim",
		UpdateScripts:       clitest.Rewrite(),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	})
}

// scriptPatience bounds each wait of a script.
const scriptPatience = 90 * time.Second

// scriptKey is the key of a script's cluster.
type scriptKey struct{}

// setUpScript starts a server for a script and waits until all allocations run. The server of a
// script whose name begins with "token" requires tokens.
func setUpScript(env *testscript.Env) error {
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	var who httpapi.Access
	if strings.HasPrefix(filepath.Base(env.WorkDir), "script-token") {
		who = scriptTokens{}
	}
	c, err := newScriptCluster(ctx, who, "write-token")
	if c != nil {
		env.Defer(func() { _ = c.stop() })
	}
	if err != nil {
		return err
	}
	env.Values[scriptKey{}] = c
	for name, value := range map[string]string{
		"NOMAD_ADDR": c.api.Address(), "HOME": env.WorkDir, "TZ": "UTC",
		"PINNED": pinnedNode, "FIRST": firstNode, "SECOND": secondNode, "SLOW": slowNode,
	} {
		env.Setenv(name, value)
	}
	return nil
}

// scriptTokens admits two users.
type scriptTokens struct{}

func (scriptTokens) Identify(token string) (httpapi.Identity, bool) {
	switch token {
	case "write-token":
		return httpapi.Identity{Name: "writer", Read: true, Write: true}, true
	case "read-token":
		return httpapi.Identity{Name: "reader", Read: true}, true
	}
	return httpapi.Identity{}, token == ""
}

// awaitInScript is "await draining|ended NODE", "await stopping|healthy|requested N NODE" and "await version N": it waits
// until the node drains, or no longer drains, or until that many of its allocations are stopping, or are healthy, or have
// a requested replacement, or until the cluster has that version.
func awaitInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await draining|ended NODE, await stopping|healthy|requested N NODE, or await version N")
	}
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	c := ts.Value(scriptKey{}).(*scriptCluster)
	ts.Check(c.await(ctx, func() (bool, error) {
		state := c.Server().Store().Snapshot()
		id := cluster.NodeID(args[len(args)-1])
		switch args[0] {
		case "draining":
			return state.Node(id).Draining(), nil
		case "ended":
			return !state.Node(id).Draining(), nil
		case "version":
			return fmt.Sprint(state.ClusterVersion()) == args[1], nil
		case "healthy", "requested":
			n := 0
			for a := range state.AllocsByNode(id) {
				if args[0] == "healthy" && a.Healthy(state.Node(id)) || args[0] == "requested" && cluster.SurgeRequested(a, state.Node(id)) {
					n++
				}
			}
			return fmt.Sprint(n) == args[1], nil
		case "stopping":
			n := 0
			for a := range state.AllocsByNode(id) {
				if a.ServerTerminal() && !a.ClientTerminal() {
					n++
				}
			}
			return fmt.Sprint(n) == args[1], nil
		}
		return false, fmt.Errorf("%q is nothing to wait for", args[0])
	}))
}

// registerInScript is "register NAME ID": it registers a node without allocations.
func registerInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: register NAME ID")
	}
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	n := &cluster.Node{ID: cluster.NodeID(args[1]), SecretID: "secret", Name: args[0], NodeClass: "none", Status: cluster.NodeReady}
	n.Canonicalize()
	_, err := ts.Value(scriptKey{}).(*scriptCluster).writer.RegisterNode(ctx, n)
	ts.Check(err)
}

// requestInScript is "api METHOD PATH [BODY]": it sends a request and prints the answer.
func requestInScript(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: api METHOD PATH [BODY]")
	}
	request, err := http.NewRequest(args[0], ts.Getenv("NOMAD_ADDR")+args[1], strings.NewReader(strings.Join(args[2:], "")))
	ts.Check(err)
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n%s\n", response.Status, text)
	if neg == (response.StatusCode == http.StatusOK) {
		ts.Fatalf("%s: %s", response.Status, text)
	}
}
