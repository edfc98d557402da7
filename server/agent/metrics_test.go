package agent_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
)

// A scrape of the leader has the drains whose records count unconfirmed allocations, until an operator confirms
// them. Here the node of an allocation is down while it drains, and its job is purged, which confirms nothing.
func TestAgent_unconfirmedDrains(t *testing.T) {
	t.Parallel()
	w := newServers(t, 1, func(c *agent.Config) {
		var err error
		c.Metrics, err = telemetry.New(telemetry.Options{})
		must.NoError(t, err)
		t.Cleanup(c.Metrics.Close)
	})
	server := w.leader().Server()
	writer, state := w.leader().Backend().Writer, server.Store().Snapshot
	eventually(t, "the cluster version", func() bool { return state().ClusterVersion() >= cluster.VersionOfConfirmation })
	register(t, api(t, w.agents[0]), testNode(1))
	job := clustertest.Job("web", cluster.JobService, 1)
	result.Of(writer.RegisterJob(t.Context(), job, cluster.JobRegistration{})).OK(t)
	node := testNode(1).ID
	eventually(t, "an allocation", func() bool { return state().Usage(node) != cluster.Usage{} })
	drain := result.Of(writer.UpdateDrain(t.Context(), cluster.DrainUpdate{Node: node, Spec: &cluster.DrainSpec{}})).OK(t).Drain
	must.StrContains(t, scrape(t, w.agents[0]), "\nnodedrain_drains_unconfirmed 0\n")
	result.Of(server.Requests().UpdateNodeStatus(t.Context(), node, cluster.NodeDown)).OK(t)
	result.Of(writer.StopJob(t.Context(), job.Key(), cluster.JobStop{Purge: true})).OK(t)
	eventually(t, "the end of the drain", func() bool { return state().DrainRecord(drain) != nil })
	one := fmt.Sprintf("\nnodedrain_drain_unconfirmed_allocations{drain=%q,node=\"n1\"} 1\n", drain)
	must.StrContains(t, scrape(t, w.agents[0]), one)
	result.Of(writer.ConfirmDrain(t.Context(), drain, "ops")).OK(t)
	must.StrNotContains(t, scrape(t, w.agents[0]), one)
}
