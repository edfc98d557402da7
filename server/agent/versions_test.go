package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// A server of commit 3dc2024 describes itself without versions. It understands version 1.
func TestVersions_anOldServerUnderstandsVersionOne(t *testing.T) {
	t.Parallel()
	var old serverInfo
	must.NoError(t, json.Unmarshal([]byte(`{"ID":"s1","Address":"127.0.0.1:4647","Expect":3,"Cluster":"c","Members":3,"Heard":null}`), &old))
	must.Eq(t, cluster.Versions{Min: 1, Max: 1}, old.understood())
	must.Eq(t, cluster.Versions{Min: 1, Max: 3}, serverInfo{Versions: cluster.Versions{Min: 1, Max: 3}}.understood())
}

// The leader does not add a server that does not understand the version of the cluster, or the version
// of an entry in flight that raises it.
func TestVersions_admit(t *testing.T) {
	t.Parallel()
	a := startAgent(t, Config{Name: "s1", BootstrapExpect: 1})
	must.NoError(t, a.Ready(t.Context()))
	raised := func() cluster.Version { return a.server.Store().Snapshot().ClusterVersion() }
	for raised() < cluster.MaxVersion {
		must.NoError(t, a.versions.round(t.Context()))
	}

	must.NoError(t, a.versions.acquire(t.Context()))
	defer a.versions.release()
	must.NoError(t, a.versions.admit(t.Context(), serverInfo{Versions: cluster.Understood()}))
	must.ErrorContains(t, a.versions.admit(t.Context(), serverInfo{}),
		fmt.Sprintf("it understands cluster versions 1 to 1, and the cluster has version %d: upgrade it", cluster.MaxVersion))
	later := cluster.Versions{Min: cluster.MaxVersion + 1, Max: cluster.MaxVersion + 2}
	must.ErrorContains(t, a.versions.admit(t.Context(), serverInfo{Versions: later}), fmt.Sprintf("the cluster has version %d", cluster.MaxVersion))
	a.versions.proposed = later.Min
	must.ErrorContains(t, a.versions.admit(t.Context(), serverInfo{Versions: cluster.Understood()}), fmt.Sprintf("the cluster has version %d", later.Min))
}

// The leader of a new cluster makes no change before the cluster has its version. Bug: the first job of a new
// cluster lost its drivers, constraints and environments, and its evaluation stayed blocked.
func TestVersions_beforeTheFirstChange(t *testing.T) {
	t.Parallel()
	a := startAgent(t, Config{Name: "s1", BootstrapExpect: 1})
	must.NoError(t, a.versions.acquire(t.Context())) // before the election, unless the machine is very slow
	must.NoError(t, a.Ready(t.Context()))
	must.NoError(t, a.server.CaughtUp(t.Context()))
	caughtUp := a.Backend().Reader.CaughtUp
	if a.server.Store().Snapshot().ClusterVersion() == cluster.MinVersion {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		must.ErrorIs(t, caughtUp(ctx), httpapi.ErrUnavailable)
	}
	a.versions.release()
	must.NoError(t, caughtUp(t.Context()))
	must.Eq(t, cluster.MaxVersion, a.server.Store().Snapshot().ClusterVersion())
}

// A server answers a request that it has received before its election. Bug: it forwarded the request to itself,
// which a server without a peer secret cannot, and answered with 500 after its wait for a leader.
func TestForward_toTheServerItself(t *testing.T) {
	t.Parallel()
	a := result.Of(New(Config{Name: "s1", BootstrapExpect: 1, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"})).OK(t)
	t.Cleanup(func() { _ = a.Stop() })
	response, err := http.Get("http://" + a.HTTPAddr() + "/v1/nodes")
	must.NoError(t, err)
	must.NoError(t, response.Body.Close())
	must.Eq(t, http.StatusOK, response.StatusCode)
}

func TestOlderServers(t *testing.T) {
	t.Parallel()
	servers := []raft.Server{{ID: "s1"}, {ID: "s2"}, {ID: "s3"}}
	answers := map[raft.ServerID]cluster.Versions{"s1": {Min: 1, Max: 1}, "s2": {Min: 1, Max: 2}, "s3": {Min: 1, Max: 1}}
	must.Eq(t, "server s1 understands version 1 at most, server s3 understands version 1 at most", olderServers(servers, answers, 1))
}
