package httpapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// A client registers, gets its TTL, finds its allocations and reports them, with its secret as the
// token.
func TestClient(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	id, secret := uuid('a', 1), secretOf(nodeID(1))
	node := &cluster.Node{
		ID: nodeID(1), SecretID: secret, Name: "n1", Datacenter: "dc1", Status: cluster.NodeReady, Attributes: map[string]string{"os.name": "debian"},
		Resources: cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 10_000, GPU: 1000}, MaxAllocs: 5,
	}
	body := result.Of(json.Marshal(wire.NewRegistration(node))).OK(t)
	must.Eq(t, 403, request(t, "PUT", url+"/v1/client/"+id+"/register", string(body), "X-Nomad-Token", secret).code, must.Sprint("it is not registered yet"))
	joined := decode[wire.HeartbeatResponse](t, request(t, "PUT", url+"/v1/client/"+id+"/register", string(body), "X-Nomad-Token", "writer-token"))
	must.Eq(t, 10*time.Second, joined.HeartbeatTTL)
	stored := w.State().Node(nodeID(1))
	must.Eq(t, secret, stored.SecretID)
	must.Eq(t, node.Resources, stored.Resources)
	must.Eq(t, 5, stored.MaxAllocs)

	must.Eq(t, 200, request(t, "PUT", url+"/v1/client/"+id+"/register", string(body), "X-Nomad-Token", secret).code, must.Sprint("it comes back"))
	beat := decode[wire.HeartbeatResponse](t, request(t, "PUT", url+"/v1/client/"+id+"/heartbeat", "", "X-Nomad-Token", secret))
	must.Eq(t, 10*time.Second, beat.HeartbeatTTL)

	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	allocs := decode[[]wire.Allocation](t, request(t, "GET", url+"/v1/node/"+id+"/allocations?stale", "", "X-Nomad-Token", secret))
	alloc := result.Of(allocs[0].Allocation()).OK(t)
	must.Eq(t, 20*time.Second, alloc.StopTime())

	before := time.Now()
	report := result.Of(json.Marshal(wire.AllocsRequest{Allocs: []wire.AllocReport{wire.NewAllocReport(cluster.AllocReport{
		Alloc: allocID(1), ClientStatus: cluster.ClientRunning, ClientDescription: "unwell", Healthy: new(false), HealthyAt: noon,
	})}})).OK(t)
	reported := request(t, "PUT", url+"/v1/client/"+id+"/allocations", string(report), "X-Nomad-Token", secret)
	must.Eq(t, w.State().Index(), decode[wire.AllocsResponse](t, reported).Index)
	a := w.State().Alloc(allocID(1))
	must.False(t, *a.DeploymentStatus.Healthy)
	must.Eq(t, noon, a.DeploymentStatus.Timestamp)
	must.Eq(t, "unwell", a.ClientDescription)
	must.False(t, a.ModifyTime.Before(before) || a.ModifyTime.After(time.Now()), must.Sprint("the server's clock, not the client's"))
}

// A client's report of another node's allocations has no effect.
func TestClient_othersAllocations(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	got := request(t, "PUT", w.serve(httpapi.Options{}).URL+"/v1/client/"+uuid('a', 2)+"/allocations", `{"Allocs":[{"ID":"`+uuid('b', 1)+`","ClientStatus":"failed"}]}`)
	must.Eq(t, 200, got.code)
	must.Eq(t, cluster.ClientRunning, w.State().Alloc(allocID(1)).ClientStatus)
}

// A new leader has not applied the entries of the one before yet. Client requests wait until it
// has. Before, its node was not found and its secret unknown.
func TestClient_newLeader(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	w.catchUp = func() {
		w.nodes(1)
		w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	}
	got := request(t, "PUT", url+"/v1/client/"+uuid('a', 1)+"/allocations", `{"Allocs":[{"ID":"`+uuid('b', 1)+`","ClientStatus":"failed"}]}`,
		"X-Nomad-Token", secretOf(nodeID(1)))
	must.Eq(t, 200, got.code, must.Sprint(got.body))
	must.Eq(t, cluster.ClientFailed, w.State().Alloc(allocID(1)).ClientStatus)
}

// A server joins, and joins again at another address.
func TestJoin(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serve(httpapi.Options{}).URL
	must.Eq(t, 200, request(t, "POST", url+"/v1/operator/raft/join", `{"ID":"s2","Address":"[::1]:4648"}`).code)
	servers := decode[wire.RaftConfiguration](t, request(t, "GET", url+"/v1/operator/raft/configuration", ""))
	must.Eq(t, "[::1]:4648", servers.Servers[1].Address)
	must.True(t, servers.Servers[1].Alive)
	must.Eq(t, 37, servers.Servers[1].AppliedIndex)
	must.Eq(t, 3, servers.Servers[1].Behind)
	must.Eq(t, 200, request(t, "POST", url+"/v1/operator/raft/join", `{"ID":"s3","Address":"[::1]:4649"}`).code)
	servers = decode[wire.RaftConfiguration](t, request(t, "GET", url+"/v1/operator/raft/configuration?stale", ""))
	must.Eq(t, wire.RaftServer{ID: "s3", Node: "s3", Address: "[::1]:4649", Voter: true, RaftProtocol: "3", Behind: servers.Servers[2].Behind}, servers.Servers[2])
	must.Eq(t, 200, request(t, "DELETE", url+"/v1/operator/raft/peer?id=s3", "").code)
	members := decode[wire.ServerMembers](t, request(t, "GET", url+"/v1/agent/members", ""))
	must.Eq(t, "::1", members.Members[1].Addr)
	must.Eq(t, "alive", members.Members[1].Status, must.Sprint("it answers"))
	must.Eq(t, 200, request(t, "DELETE", url+"/v1/operator/raft/peer?id=s2", "").code)
	must.Len(t, 1, peerList{w}.Members())
}
