package agent_test

import (
	"sync/atomic"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// An orderly shutdown takes a snapshot, and the next start replays none of the entries before it. A
// second shutdown without a new entry takes none.
func TestAgent_snapshotAtShutdown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var replayed atomic.Int64
	config := agent.Config{DataDir: dir, BootstrapExpect: 1, OnApply: func(shims.Applied) { replayed.Add(1) }}
	a := start(t, config)
	ready(t, a)
	for i := range 20 {
		result.Of(a.Backend().Writer.RegisterNode(t.Context(), testNode(i))).OK(t)
	}
	snapshot := func(a *agent.Agent) string { return a.Server().Raft().Stats()["last_snapshot_index"] }
	must.Eq(t, "0", snapshot(a))
	must.NoError(t, stop(a))

	replayed.Store(0)
	a = start(t, config)
	first := snapshot(a)
	must.NotEq(t, "0", first)
	ready(t, a)
	must.NoError(t, a.Backend().Reader.Consistent(t.Context()))
	must.Zero(t, replayed.Load())
	must.NotNil(t, a.Server().Store().Snapshot().Node(testNode(19).ID))
	must.NoError(t, stop(a))
	must.Eq(t, first, snapshot(start(t, config)))
}

// The newest entry of the log may be a change of the servers: the snapshot is taken all the same.
func TestAgent_snapshotAtShutdownAfterARemoval(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, func(c *agent.Config) { c.DataDir = t.TempDir() })
	leader := w.leader()
	versioned(t, leader) // nothing is written after that
	gone := w.others(leader)[0]
	must.NoError(t, leader.Backend().Peers.Remove(t.Context(), gone.Name()))
	must.NoError(t, stop(leader))
	must.NotEq(t, "0", leader.Server().Raft().Stats()["last_snapshot_index"])
}
