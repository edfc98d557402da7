package agent_test

import (
	"net"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

// Parts of invalid configurations.

func newVoters() []raft.Server { return []raft.Server{{ID: "s1", Address: "127.0.0.1:1"}} }

func invalidHeartbeats() heartbeat.Options { return heartbeat.Options{MinTTL: -1} }

func invalidAPI() httpapi.Options { return httpapi.Options{MaxBody: -1} }

func invalidDrainer() drainer.NodeDrainerConfig { return drainer.NodeDrainerConfig{MaxInFlight: -1} }

// dirOf returns the data directory of a server of that name.
func dirOf(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	a := result.Of(agent.New(agent.Config{Name: name, DataDir: dir, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"})).OK(t)
	must.NoError(t, stop(a))
	return dir
}

// used returns an address at which a listener accepts connections.
func used(t *testing.T) string {
	t.Helper()
	l := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
