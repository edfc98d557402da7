package agent_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// envCrash makes the test binary the process that TestCrash kills.
const envCrash = "NODEDRAIN_TEST_CRASH_DIR"

// TestMain runs the tests, or the process that TestCrash kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(envCrash); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	freshmachine.Enter()
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // most tests wait for servers and use little CPU time
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// writeUntilKilled registers nodes and prints each acknowledged one.
func writeUntilKilled(dir string) error {
	a, err := agent.New(agent.Config{
		DataDir: dir, BootstrapExpect: 1, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", Raft: quickRaft(),
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := a.Ready(ctx); err != nil {
		return err
	}
	for i := range 1 << 30 {
		id := cluster.NodeID(fmt.Sprintf("n%d", i))
		if _, err := a.Backend().Writer.RegisterNode(ctx, &cluster.Node{ID: id, Status: cluster.NodeReady}); err != nil {
			return err
		}
		fmt.Println("acknowledged", id)
	}
	return nil
}

// A killed process loses no acknowledged write, and its data directory can be opened again.
func TestCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acknowledged []cluster.NodeID
	for range 2 { // the second process opens the directory of the first
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), envCrash+"="+dir)
		out := result.Of(child.StdoutPipe()).OK(t)
		child.Stderr = os.Stderr
		must.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for range 50 {
			must.True(t, lines.Scan(), must.Sprint("the process ended before the test killed it"))
			id, ok := strings.CutPrefix(lines.Text(), "acknowledged ")
			must.True(t, ok, must.Sprint(lines.Text()))
			acknowledged = append(acknowledged, cluster.NodeID(id))
		}
		must.NoError(t, child.Process.Kill())
		for lines.Scan() { // the rest of its output
			if id, ok := strings.CutPrefix(lines.Text(), "acknowledged n"); ok {
				acknowledged = append(acknowledged, cluster.NodeID("n"+id))
			}
		}
		must.Error(t, child.Wait())
	}
	a := start(t, agent.Config{DataDir: dir, BootstrapExpect: 1})
	ready(t, a)
	must.NoError(t, a.Backend().Reader.Consistent(t.Context()))
	state := a.Server().Store().Snapshot()
	for _, id := range acknowledged {
		must.NotNil(t, state.Node(id), must.Sprint(id))
	}
	t.Logf("%d acknowledged writes survived", len(acknowledged))
}
