package agent_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

// The nodes of a Dev cluster drain.
func TestDev_drains(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := agent.DevConfig{
		Agent: agent.Config{HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"},
		Fleet: simclient.Options{Behave: func(*cluster.Allocation, *rand.Rand) simclient.Behaviour {
			return simclient.Behaviour{Start: time.Millisecond, Verdict: time.Millisecond, Run: time.Hour, Stop: time.Millisecond}
		}},
	}
	if testing.Verbose() {
		c.Agent.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug})
	}
	dev := result.Of(agent.NewDev(t.Context(), c)).OK(t)
	t.Cleanup(func() { must.NoError(t, dev.Stop()) })
	t.Logf("ready after %s", time.Since(began))

	api := result.Of(apiclient.New(apiclient.Config{Address: dev.HTTPAddr()})).OK(t)
	nodes := result.Read(api.Nodes(t.Context(), apiclient.NodesQuery{})).OK(t)
	must.SliceLen(t, agent.DefaultDevClients, nodes)
	id := nodes[0].ID
	_, a, err := api.UpdateDrain(t.Context(), id, wire.DrainRequest{DrainSpec: &wire.DrainSpec{Deadline: -1}}, "")
	must.NoError(t, err)
	for index := a.Index; ; {
		n, a, err := api.Node(t.Context(), id, apiclient.Query{Index: index})
		must.NoError(t, err)
		if n.DrainStrategy == nil {
			must.Eq(t, string(cluster.NodeIneligible), n.SchedulingEligibility)
			break
		}
		index = a.Index
	}
}

// A purged node registers again with its next heartbeat: nothing else would bring it back.
func TestDev_purged(t *testing.T) {
	t.Parallel()
	dev := result.Of(agent.NewDev(t.Context(), agent.DevConfig{
		Agent: agent.Config{
			HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0",
			Heartbeats: heartbeat.Options{MinTTL: 100 * time.Millisecond, Grace: time.Minute},
		},
		Clients: 1, NoJobs: true,
	})).OK(t)
	t.Cleanup(func() { must.NoError(t, dev.Stop()) })
	api := result.Of(apiclient.New(apiclient.Config{Address: dev.HTTPAddr()})).OK(t)
	nodes, a, err := api.Nodes(t.Context(), apiclient.NodesQuery{})
	must.NoError(t, err)
	must.SliceLen(t, 1, nodes)
	first := nodes[0]
	result.Of(dev.Backend().Writer.PurgeNode(t.Context(), cluster.NodeID(first.ID))).OK(t)
	for len(nodes) == 0 || nodes[0].CreateIndex == first.CreateIndex {
		nodes, a, err = api.Nodes(t.Context(), apiclient.NodesQuery{Query: apiclient.Query{Index: a.Index}})
		must.NoError(t, err)
	}
	must.Eq(t, first.ID, nodes[0].ID)
	must.Eq(t, string(cluster.NodeReady), nodes[0].Status)
}

// An event stream does not hold up the stop of its server: it would never end by itself.
func TestDev_stopEndsEventStreams(t *testing.T) {
	t.Parallel()
	dev := result.Of(agent.NewDev(t.Context(), agent.DevConfig{Agent: agent.Config{HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"}, Clients: -1, NoJobs: true})).OK(t)
	r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+dev.HTTPAddr()+httpapi.EventStreamPath, nil)).OK(t)
	stream := result.Of(http.DefaultTransport.RoundTrip(r)).OK(t)
	must.Eq(t, 200, stream.StatusCode)
	must.NoError(t, dev.Stop())
	must.NoError(t, stream.Body.Close())
}
