package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/agent"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// quickRaft elects a leader in a fraction of a second.
func quickRaft() *raft.Config {
	c := raft.DefaultConfig()
	c.BatchApplyCh = true
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 300*time.Millisecond, 300*time.Millisecond, 250*time.Millisecond
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
	if testing.Verbose() {
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: c.Name, Level: hclog.Debug})
	}
	a, err := agent.New(c)
	must.NoError(t, err)
	t.Cleanup(func() { _ = a.Stop() })
	return a
}

func ready(t *testing.T, agents ...*agent.Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
