package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
)

// The scripts in testdata/node hold the commands that a node answers. Each script has its own fixture.
func TestNodeScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/node",
		UpdateScripts:       clitest.Rewrite(),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			f, err := newFixtureNode(filepath.Join(env.WorkDir, "allocs"))
			if err != nil {
				return err
			}
			env.Defer(f.Close)
			env.Values[scriptKey{}] = f
			for name, value := range map[string]string{"NOMAD_ADDR": f.URL, "HOME": env.WorkDir, "TZ": "UTC"} {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"requests": requestsInScript,
			"node":     nodeInScript,
		},
	})
}

// requestsInScript prints the writes that the fixture has got.
func requestsInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: requests")
	}
	for _, line := range ts.Value(scriptKey{}).(*fixtureNode).writes() {
		fmt.Fprintln(ts.Stdout(), line)
	}
}

// nodeInScript is "node ends CODE", "node refuses TEXT" or "node goes": the task ends, the node refuses
// requests, or it has no connection to the servers.
func nodeInScript(ts *testscript.TestScript, neg bool, args []string) {
	f := ts.Value(scriptKey{}).(*fixtureNode)
	switch {
	case neg:
		ts.Fatalf("usage: node ends|refuses|goes")
	case len(args) == 1 && args[0] == "ends":
		f.end(3)
	case len(args) == 2 && args[0] == "refuses":
		f.change(func() { f.refused = args[1] })
	case len(args) == 1 && args[0] == "goes":
		f.change(func() { f.down = true })
	default:
		ts.Fatalf("usage: node ends|refuses|goes")
	}
}
