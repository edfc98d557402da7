package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/access"
	"github.com/seed-f9cf0b39/nodedrain/agent"
	"github.com/seed-f9cf0b39/nodedrain/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// quickRaft elects a leader within two seconds. With shorter timeouts leaders lose leadership on a
// busy machine, and requests fail now and then.
func quickRaft() *raft.Config {
	c := raft.DefaultConfig()
	c.BatchApplyCh = true
	c.LeaderLeaseTimeout = c.HeartbeatTimeout // half of it by default
	c.CommitTimeout = 5 * time.Millisecond
	return c
}

func start(t *testing.T, c agent.Config) *agent.Agent {
	t.Helper()
	if c.HTTPAddr == "" {
		c.HTTPAddr = "127.0.0.1:0"
	}
	if c.ServerAddr == "" {
		c.ServerAddr = "127.0.0.1:0"
	}
	if c.Raft == nil {
		c.Raft = quickRaft()
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = patience // far longer than a test lets anything take that should not wait
	}
	if c.LeaderWait == 0 {
		c.LeaderWait = patience
	}
	if c.Heartbeats == (heartbeat.Options{}) {
		c.Heartbeats.MinTTL = time.Hour // no heartbeats: the state must not change with time
	}
	if testing.Verbose() {
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: c.Name, Level: hclog.Debug})
	}
	a, err := agent.New(c)
	must.NoError(t, err)
	t.Cleanup(func() { _ = a.Stop() })
	return a
}

// patience bounds the wait for anything that must happen: the machine may be busy. Tests that
// something does not wait compare its time with a third of patience.
const patience = 90 * time.Second

func ready(t *testing.T, agents ...*agent.Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, a := range agents {
		must.NoError(t, a.Ready(ctx))
	}
}

func TestAgent_alone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := start(t, agent.Config{DataDir: dir, BootstrapExpect: 1})
	ready(t, a)
	for i := range 10 {
		_, err := a.Backend().Writer.RegisterNode(t.Context(), &cluster.Node{ID: cluster.NodeID(fmt.Sprint("n", i)), Status: cluster.NodeReady})
		must.NoError(t, err)
	}
	_, err := agent.New(agent.Config{DataDir: dir, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"})
	must.ErrorContains(t, err, "in use by another process")
	must.NoError(t, a.Stop())
	a = start(t, agent.Config{DataDir: dir, BootstrapExpect: 1})
	ready(t, a)
	must.NoError(t, a.Backend().Reader.Consistent(t.Context()))
	must.NotNil(t, a.Server().Store().Snapshot().Node("n9"))
}

// Tokens over plain HTTP on a public address are warned about once.
func TestAgent_warnsOfTokensWithoutTLS(t *testing.T) {
	t.Parallel()
	_, token, err := access.Generate("ops", access.Write)
	must.NoError(t, err)
	path := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(path, []byte(token.Line()+"\n"), 0o600))
	tokens, err := access.Open(path, nil)
	must.NoError(t, err)
	for address, want := range map[string]int{"0.0.0.0:0": 1, "127.0.0.1:0": 0} {
		var mu sync.Mutex
		var said strings.Builder // guarded by mu
		a, err := agent.New(agent.Config{
			HTTPAddr: address, ServerAddr: "127.0.0.1:0", Access: tokens,
			Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: &said, Mutex: &mu}),
		})
		must.NoError(t, err)
		must.NoError(t, a.Stop())
		mu.Lock()
		must.Eq(t, want, strings.Count(said.String(), "tokens are sent without TLS"))
		mu.Unlock()
	}
}
