package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// devServer is a cluster that runs in this process: one server on loopback, simulated
// clients, and some jobs.
func devServer(t *testing.T) *servers {
	t.Helper()
	quick := simclient.Options{MinStart: time.Millisecond, MaxStart: 20 * time.Millisecond, RunTime: time.Hour, MinHealthyTime: time.Millisecond}
	d, err := agent.New(agent.Config{HTTPAddr: "127.0.0.1:0"}.InMemory())
	must.NoError(t, err)
	var clients sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(func() {
		end()
		clients.Wait()
		must.NoError(t, d.Stop())
	})
	must.NoError(t, d.Ready(ctx))
	var nodes []*cluster.Node
	for i := range 4 {
		nodes = append(nodes, &cluster.Node{
			ID: cluster.NodeID(uuid.NewString()), SecretID: uuid.NewString(), Name: fmt.Sprintf("dev-%d", i+1), Datacenter: "dc1",
			Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 4000, MemoryMB: 8192, DiskMB: 100 << 10},
		})
	}
	clients.Go(func() {
		_ = remote.Run(ctx, remote.Config{Addresses: []string{d.HTTPAddr()}, Nodes: nodes, Fleet: quick}) // the configuration has no mistake
	})
	c, err := api.NewClient(&api.Config{Address: "http://" + d.HTTPAddr()})
	must.NoError(t, err)
	s := &servers{t: t, all: []*serverProcess{{api: c}}}
	s.registerJobs(4)
	s.allRun("web", 8)
	return s
}

// The reference's client drains a node of a running server with everything that it can
// ask for, and watches it to the end.
func TestClient_drain(t *testing.T) {
	s := devServer(t)
	c := s.all[0].api
	nodes, meta, err := c.Nodes().List(nil)
	must.NoError(t, err)
	must.SliceLen(t, 4, nodes)
	must.Positive(t, meta.LastIndex)
	node := nodes[0].ID
	s.await("a service and the system job on the node", func() bool { // a node that drains gets no system job
		running := liveOn(t, c, node)
		return slices.Contains(running, "web") && slices.Contains(running, "logs")
	})

	news := make(chan error, 1)
	go func() { // a blocking list is answered when the node begins to drain
		_, _, err := c.Nodes().List((&api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: time.Minute}).WithContext(t.Context()))
		news <- err
	}()
	drained, err := c.Nodes().UpdateDrainOpts(node, &api.DrainOptions{
		DrainSpec: &api.DrainSpec{Deadline: 5 * time.Second, IgnoreSystemJobs: true}, MarkEligible: false,
		Meta: map[string]string{"message": "kernel upgrade", "owner": "ops"},
	}, &api.WriteOptions{IdempotencyToken: "once"})
	must.NoError(t, err)
	must.NoError(t, <-news)
	again, err := c.Nodes().UpdateDrainOpts(node, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: -1}}, &api.WriteOptions{IdempotencyToken: "once"})
	must.NoError(t, err)
	must.Eq(t, drained.NodeModifyIndex, again.NodeModifyIndex) // the key was seen before: nothing changed

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last string
	for m := range c.Nodes().MonitorDrain(ctx, node, drained.LastIndex, true) {
		must.NotEq(t, api.MonitorMsgLevelError, m.Level, must.Sprint(m.Message))
		last = m.Message
	}
	must.NoError(t, ctx.Err())
	must.NotEq(t, "", last)

	n, _, err := c.Nodes().Info(node, nil)
	must.NoError(t, err)
	must.Nil(t, n.DrainStrategy)
	must.Eq(t, "ineligible", n.SchedulingEligibility)
	must.Eq(t, api.DrainStatusComplete, n.LastDrain.Status)
	must.Eq(t, map[string]string{"message": "kernel upgrade", "owner": "ops"}, n.LastDrain.Meta)
	must.Eq(t, []string{"logs"}, liveOn(t, c, node)) // the system job was left

	made, err := c.Nodes().ToggleEligibility(node, true, nil)
	must.NoError(t, err)
	must.Positive(t, made.LastIndex)
	unchanged, err := c.Nodes().ToggleEligibility(node, true, nil)
	must.NoError(t, err)
	must.Zero(t, unchanged.LastIndex)
}

// A drain that is cancelled gives the node back, and says so.
func TestClient_cancel(t *testing.T) {
	s := devServer(t)
	c := s.all[0].api
	var node string
	s.await("batch work, on which a drain without a deadline waits for an hour", func() bool {
		allocs, _, err := c.Jobs().Allocations("report", false, nil)
		must.NoError(t, err)
		for _, a := range allocs {
			if a.ClientStatus == api.AllocClientStatusRunning {
				node = a.NodeID
			}
		}
		return node != ""
	})
	_, err := c.Nodes().UpdateDrainOpts(node, &api.DrainOptions{DrainSpec: &api.DrainSpec{}}, nil)
	must.NoError(t, err)
	_, err = c.Nodes().UpdateDrainOpts(node, &api.DrainOptions{MarkEligible: true, Meta: map[string]string{"cancel_message": "not today"}}, nil)
	must.NoError(t, err)
	n, _, err := c.Nodes().Info(node, nil)
	must.NoError(t, err)
	must.Eq(t, api.DrainStatusCanceled, n.LastDrain.Status)
	must.Eq(t, "eligible", n.SchedulingEligibility)
}

// liveOn are the jobs of which something runs on a node, sorted.
func liveOn(t *testing.T, c *api.Client, node string) []string {
	t.Helper()
	allocs, meta, err := c.Nodes().Allocations(node, nil)
	must.NoError(t, err)
	must.Positive(t, meta.LastIndex)
	var jobs []string
	for _, a := range allocs {
		if a.ClientStatus == api.AllocClientStatusRunning && !slices.Contains(jobs, a.JobID) {
			jobs = append(jobs, a.JobID)
		}
	}
	slices.Sort(jobs)
	return jobs
}
