package agent_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// The leader adds a server only if the server answers at that address by that name. Otherwise the
// cluster could lose its quorum, or the leader its address.
func TestJoin_refusesWrongServers(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{Name: "s1", BootstrapExpect: 1})
	impostor := start(t, agent.Config{Name: "s1"})
	other := start(t, agent.Config{Name: "s2"})
	ready(t, a)
	configured := func() uint64 {
		f := a.Server().Raft().GetConfiguration()
		must.NoError(t, f.Error())
		return f.Index()
	}
	before := configured()
	for _, c := range []struct{ name, address, want string }{
		{"s2", "127.0.0.1:1", "requesting from 127.0.0.1:1"}, // no server listens there
		{"s1", impostor.ServerAddr(), "the leader has the same name"},
		{"s2", impostor.ServerAddr(), " is s1"},
		{"s3", other.ServerAddr(), " is s2"},
	} {
		must.ErrorContains(t, a.Backend().Peers.Join(t.Context(), c.name, c.address), c.want, must.Sprint(c))
	}
	must.NoError(t, a.Backend().Peers.Join(t.Context(), "s1", a.ServerAddr())) // changes nothing
	must.Eq(t, before, configured())

	must.NoError(t, a.Backend().Peers.Join(t.Context(), "s2", other.ServerAddr()))
	ready(t, other)
	second := start(t, agent.Config{Name: "s2"})
	must.ErrorContains(t, a.Backend().Peers.Join(t.Context(), "s2", second.ServerAddr()), "the same name answers at "+other.ServerAddr())
}

// A server whose known address now belongs to another cluster does not join that cluster, and the
// leader there refuses it.
func TestJoin_anotherCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, agent.Config{Name: "s1", BootstrapExpect: 1})
	ready(t, first)
	moved := start(t, agent.Config{Name: "s2", DataDir: dir, Join: []string{first.ServerAddr()}})
	ready(t, moved)
	must.NoError(t, stop(moved))
	must.NoError(t, stop(first))

	other := start(t, agent.Config{Name: "s3", BootstrapExpect: 1})
	ready(t, other)
	moved = start(t, agent.Config{DataDir: dir, Join: []string{other.ServerAddr()}})
	must.ErrorContains(t, other.Backend().Peers.Join(t.Context(), "s2", moved.ServerAddr()), "the log of another cluster")
	must.SliceLen(t, 1, other.Backend().Peers.Members())
	must.SliceLen(t, 2, moved.Backend().Peers.Members())
}
