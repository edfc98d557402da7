package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"
	"github.com/shoenig/test/wait"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

// startServers starts a cluster of agents with these heartbeats, and returns the addresses of
// their APIs.
func startServers(t *testing.T, n int, beats heartbeat.Options) (agents []*agent.Agent, addresses []string) {
	t.Helper()
	settings := raft.DefaultConfig()
	settings.LeaderLeaseTimeout = settings.HeartbeatTimeout // otherwise leaders of a busy machine step down
	secret, err := agent.NewPeerSecret("the peer secret of the servers of this test")
	must.NoError(t, err)
	var join []string
	for i := range n {
		a, err := agent.New(agent.Config{
			Name: fmt.Sprintf("s%d", i+1), HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", BootstrapExpect: n, Join: join, Raft: settings,
			Heartbeats: beats, PeerSecret: secret,
		})
		must.NoError(t, err)
		t.Cleanup(func() { _ = a.Stop() })
		agents, addresses = append(agents, a), append(addresses, a.HTTPAddr())
		join = []string{agents[0].ServerAddr()}
	}
	for _, a := range agents {
		must.NoError(t, a.Ready(t.Context()))
	}
	return agents, addresses
}

func nodes(n int) []*cluster.Node {
	list := make([]*cluster.Node, n)
	for i := range list {
		list[i] = &cluster.Node{
			ID: cluster.NodeID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), SecretID: fmt.Sprintf("secret %d", i), Name: fmt.Sprintf("n%d", i),
			Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 4000, MemoryMB: 8192},
		}
	}
	return list
}

// play runs clients until the function that it returns is called, which waits for
// them.
func play(t *testing.T, c remote.Config) (stop func()) {
	t.Helper()
	c.Fleet.MinStart, c.Fleet.MaxStart = time.Millisecond, 5*time.Millisecond
	c.Fleet.Behave = func(a *cluster.Allocation, _ *rand.Rand) simclient.Behaviour {
		return simclient.Behaviour{Start: time.Millisecond, Verdict: 10 * time.Millisecond, Stop: 5 * time.Millisecond, Run: time.Hour}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- remote.Run(ctx, c) }()
	return func() {
		cancel()
		must.NoError(t, <-ended)
	}
}

// patience is how long anything may take that has to happen: the machine may be busy.
const patience = 90 * time.Second

// await reads from a server until what it says will do.
func await[T any](t *testing.T, what string, read func(context.Context, client.Query) (T, client.Answer, error), enough func(T) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var q client.Query
	eventually(t, what, func() bool {
		found, a, err := read(ctx, q)
		q = client.Query{Index: a.Index, Wait: time.Second}
		return err == nil && enough(found)
	})
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	must.Wait(t, wait.InitialSuccess(wait.BoolFunc(holds), wait.Timeout(patience), wait.Gap(10*time.Millisecond)), must.Sprint(what))
}

// An allocation that the clients cannot read fails with the reason, and the others run. Before, the
// clients refused the whole answer, and started and stopped nothing.
func TestRun_unreadable(t *testing.T) {
	t.Parallel()
	agents, addresses := startServers(t, 1, heartbeat.Options{MinTTL: time.Hour})
	deep := json.RawMessage(strings.Repeat(`{"a":`, 9_994) + "1" + strings.Repeat("}", 9_994))
	for id, config := range map[cluster.JobID]json.RawMessage{"deep": deep, "web": nil} {
		eventually(t, "a cluster version with drivers", func() bool {
			_, err := agents[0].Backend().Writer.RegisterJob(t.Context(), &cluster.Job{ID: id, TaskGroups: []*cluster.TaskGroup{{
				Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "t", Driver: "mock", Config: config}},
			}}}, nil)
			return err == nil
		})
	}
	node := nodes(1)
	node[0].ReportsDrivers, node[0].Drivers = true, map[string]*cluster.DriverInfo{"mock": {Detected: true, Healthy: true}}
	defer play(t, remote.Config{Addresses: addresses, Nodes: node})()
	api, err := client.New(client.Config{Address: addresses[0]})
	must.NoError(t, err)
	await(t, "an allocation that runs and one that has failed", func(ctx context.Context, q client.Query) ([]*wire.Allocation, client.Answer, error) {
		return api.NodeAllocations(ctx, string(node[0].ID), q)
	}, func(list []*wire.Allocation) bool {
		runs, failed := false, false
		for _, a := range list {
			runs = runs || a.JobID == "web" && a.ClientStatus == string(cluster.ClientRunning)
			failed = failed || a.JobID == "deep" && a.ClientStatus == string(cluster.ClientFailed) &&
				a.ClientDescription == `the client cannot read the allocation: task "t": the config is nested 9994 levels deep, and clients read at most 9900`
		}
		return runs && failed
	})
}

// Clients in another process than the servers run allocations, move them when a node drains,
// and continue when the leader is lost.
func TestRun(t *testing.T) {
	t.Parallel()
	agents, addresses := startServers(t, 3, heartbeat.Options{MinTTL: time.Hour}) // none goes down, however busy the machine is
	stop := play(t, remote.Config{Addresses: addresses, Nodes: nodes(4)})
	defer stop()
	api, err := client.New(client.Config{Address: addresses[0]})
	must.NoError(t, err)

	await(t, "nodes that are ready", func(ctx context.Context, q client.Query) ([]*wire.NodeListStub, client.Answer, error) {
		return api.Nodes(ctx, client.NodesQuery{Query: q})
	}, func(list []*wire.NodeListStub) bool { return len(list) == 4 })
	leader := leaderOf(t, agents)
	_, err = leader.Backend().Writer.RegisterJob(t.Context(), &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: 8, Tasks: []*cluster.Task{{Name: "t", Resources: cluster.Resources{CPU: 500}}},
	}}}, nil)
	must.NoError(t, err)
	first := string(nodes(1)[0].ID)
	allocs := func(ctx context.Context, q client.Query) ([]*wire.Allocation, client.Answer, error) {
		return api.NodeAllocations(ctx, first, q)
	}
	healthy := func(list []*wire.Allocation) (n int) {
		for _, a := range list {
			if a.ClientStatus == string(cluster.ClientRunning) && a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil {
				n++
			}
		}
		return n
	}
	await(t, "allocations that are healthy", allocs, func(list []*wire.Allocation) bool { return healthy(list) == 2 })

	if leader == agents[0] { // whom we ask
		leader = agents[1]
	}
	must.NoError(t, leader.Stop())
	eventually(t, "a leader that takes a drain", func() bool {
		_, _, err := api.UpdateDrain(t.Context(), first, wire.DrainRequest{DrainSpec: &wire.DrainSpec{}}, "")
		return err == nil
	})
	await(t, "the end of the drain", func(ctx context.Context, q client.Query) (*wire.Node, client.Answer, error) {
		return api.Node(ctx, first, q)
	}, func(n *wire.Node) bool {
		return n.DrainStrategy == nil && n.LastDrain != nil && n.LastDrain.Status == "complete"
	})
	await(t, "a node that is empty", allocs, func(list []*wire.Allocation) bool { return healthy(list) == 0 })
	list, _, err := api.Nodes(t.Context(), client.NodesQuery{})
	must.NoError(t, err)
	for _, n := range list {
		must.Eq(t, string(cluster.NodeReady), n.Status)
	}
}

func leaderOf(t *testing.T, agents []*agent.Agent) *agent.Agent {
	t.Helper()
	var leader *agent.Agent
	eventually(t, "a leader", func() bool {
		for _, a := range agents {
			if a.Backend().Reader.Consistent(t.Context()) == nil {
				leader = a
			}
		}
		return leader != nil
	})
	return leader
}

// A node whose client is silent is down, and ready when the client is back. A deleted node is
// registered again.
func TestRun_silence(t *testing.T) {
	t.Parallel()
	agents, addresses := startServers(t, 1, heartbeat.Options{MinTTL: 200 * time.Millisecond, Grace: 300 * time.Millisecond, MaxRate: 1000})
	config := remote.Config{Addresses: addresses, Nodes: nodes(1)}
	stop := play(t, config)
	api, err := client.New(client.Config{Address: addresses[0]})
	must.NoError(t, err)
	id := nodes(1)[0].ID
	node := func(ctx context.Context, q client.Query) (*wire.Node, client.Answer, error) {
		return api.Node(ctx, string(id), q)
	}
	has := func(status cluster.NodeStatus) func(*wire.Node) bool {
		return func(n *wire.Node) bool { return n.Status == string(status) }
	}
	await(t, "a node", node, has(cluster.NodeReady))
	stop()
	await(t, "a node that is down", node, has(cluster.NodeDown))
	defer play(t, config)()
	await(t, "a node that is back", node, has(cluster.NodeReady))
	_, err = agents[0].Backend().Writer.PurgeNode(t.Context(), id)
	must.NoError(t, err)
	await(t, "a node that is registered again", node, has(cluster.NodeReady))
}

func TestRun_refuses(t *testing.T) {
	t.Parallel()
	good := remote.Config{Addresses: []string{"127.0.0.1:1"}, Nodes: nodes(1)}
	for name, c := range map[string]struct {
		config func(*remote.Config)
		want   string
	}{
		"no addresses": {func(c *remote.Config) { c.Addresses = nil }, "Addresses"},
		"no nodes":     {func(c *remote.Config) { c.Nodes = nil }, "Nodes"},
		"no secret":    {func(c *remote.Config) { c.Nodes = []*cluster.Node{{ID: "a"}} }, "no secret"},
		"no address":   {func(c *remote.Config) { c.Addresses = []string{"ftp://x"} }, "invalid address"},
		"fleet":        {func(c *remote.Config) { c.Fleet.CopyTime = -1 }, "CopyTime"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good
			c.config(&config)
			must.ErrorContains(t, remote.Run(t.Context(), config), c.want)
		})
	}
}
