package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/shims"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// The nodes of the scripts. The ids of the first two share a prefix.
const (
	pinnedNode = "7c6b3110-0000-4000-8000-00000000000a"
	firstNode  = "7c6b3110-0000-4000-8000-00000000000b"
	secondNode = "e1d90000-0000-4000-8000-00000000000c"
	slowNode   = "51050000-0000-4000-8000-00000000000d"
)

// scriptUnit is the unit of the times of the scripts' jobs.
const scriptUnit = 5 * time.Millisecond

// scriptNodes returns four nodes: all allocations can leave two of them, none leaves the pinned
// one before a deadline, and those on the slow one take days to stop.
func scriptNodes() (nodes []*cluster.Node) {
	for _, n := range []struct{ id, name, class string }{
		{pinnedNode, "pinned", "pinned"}, {firstNode, "first", "general"}, {secondNode, "second", "general"}, {slowNode, "slow", "slow"},
	} {
		nodes = append(nodes, &cluster.Node{
			ID: cluster.NodeID(n.id), SecretID: "secret of " + n.name, Name: n.name, Datacenter: "dc1", NodeClass: n.class,
			HTTPAddr: "127.0.0.1:0", Status: cluster.NodeReady, Attributes: map[string]string{"os.name": "simulated"},
			Meta:      map[string]string{"rack": "r-" + n.class},
			Resources: cluster.Resources{CPU: 16_000, MemoryMB: 32_768, DiskMB: 100_000},
		})
	}
	slow := nodes[len(nodes)-1]
	slow.ReportsDrivers = true
	slow.Drivers = map[string]*cluster.DriverInfo{
		"raw_exec": {Detected: true, Healthy: true}, "docker": {Detected: true, HealthDescription: "no daemon answers"},
	}
	return nodes
}

// scriptJobs returns the jobs of those nodes.
func scriptJobs() []*cluster.Job {
	job := func(t cluster.JobType, id string, count, maxParallel int, kill time.Duration, classes ...string) *cluster.Job {
		g := &cluster.TaskGroup{Name: id, Count: count, NodeClasses: classes, Tasks: []*cluster.Task{{
			Name: "main", KillTimeout: kill, Resources: cluster.Resources{CPU: 1000, MemoryMB: 1024, DiskMB: 100},
		}}}
		if t == cluster.JobService {
			g.Migrate = &cluster.MigrateStrategy{
				MaxParallel: maxParallel, HealthCheck: cluster.HealthChecks, MinHealthyTime: scriptUnit, HealthyDeadline: time.Hour,
			}
		}
		return &cluster.Job{ID: cluster.JobID(id), Type: t, TaskGroups: []*cluster.TaskGroup{g}}
	}
	plugin := job(cluster.JobSystem, "csi-node", 1, 0, scriptUnit, "general")
	plugin.TaskGroups[0].Tasks[0].StoragePlugin = true
	stubborn := job(cluster.JobService, "stubborn", 2, 2, 10_000*time.Hour, "slow")
	stubborn.TaskGroups[0].Tasks[0].Driver = "raw_exec" // its node reports drivers
	web := job(cluster.JobService, "web", 4, 1, scriptUnit, "general")
	web.TaskGroups[0].Services = []cluster.Service{{Name: "front", PortLabel: "80", Address: "${node.unique.name}.example", Tags: []string{"b", "a"}}}
	return []*cluster.Job{
		plugin,
		job(cluster.JobSystem, "log-shipper", 1, 0, scriptUnit, "general", "pinned"),
		web,
		job(cluster.JobService, "db", 2, 0, scriptUnit, "pinned"),
		job(cluster.JobBatch, "report", 1, 0, scriptUnit, "pinned"),
		stubborn,
	}
}

// scriptAllocs is the number of allocations of the jobs above, in their order.
const scriptAllocs = 2 + 3 + 4 + 2 + 1 + 2

// scriptCluster is the cluster of a script: a server in memory with its API on a free port, and
// simulated clients. It applies the clients' reports.
type scriptCluster struct {
	*agent.Agent
	api    *client.Client
	writer httpapi.Writer
	fleet  *simclient.Fleet
	// life ends when stop begins; running counts the fleet's goroutine, and that of the
	// batch of reports in flight.
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// newScriptCluster returns when all allocations run and are healthy.
func newScriptCluster(ctx context.Context, access httpapi.Access, token string) (*scriptCluster, error) {
	c := new(scriptCluster)
	c.life, c.end = context.WithCancel(context.Background())
	settings := raft.DefaultConfig()
	settings.HeartbeatTimeout, settings.ElectionTimeout = 50*time.Millisecond, 50*time.Millisecond
	settings.LeaderLeaseTimeout, settings.CommitTimeout = 50*time.Millisecond, time.Millisecond
	started := make(chan struct{}) // the fleet is
	var err error
	if c.Agent, err = agent.New(agent.Config{
		Name: "server-1", HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", BootstrapExpect: 1, Raft: settings, Access: access,
		Heartbeats: heartbeat.Options{MinTTL: time.Hour}, // no client sends heartbeats
		OnApply: func(shims.Applied) {
			select {
			case <-started:
				c.fleet.ChangedAll()
			default:
			}
		},
	}); err != nil {
		return nil, err
	}
	c.writer = c.Backend().Writer
	if c.api, err = client.New(client.Config{Address: "http://" + c.HTTPAddr(), Token: token}); err != nil {
		return c, err
	}
	if c.fleet, err = simclient.New(simclient.Options{
		Snapshot: func() simclient.State { return c.Server().Store().Snapshot().WorkView() },
		Applier:  c,
		MinStart: scriptUnit, MaxStart: 2 * scriptUnit, RunTime: 10_000 * time.Hour,
	}); err != nil {
		return c, err
	}
	close(started)
	if err := c.populate(ctx); err != nil {
		return c, err
	}
	c.running.Go(func() { c.fleet.Run(c.life) })
	return c, c.awaitRunning(ctx)
}

func (c *scriptCluster) populate(ctx context.Context) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	for _, n := range scriptNodes() {
		n.Canonicalize()
		if err := insist(ctx, func() error { _, err := c.writer.RegisterNode(ctx, n); return err }); err != nil {
			return err
		}
	}
	for _, j := range scriptJobs() {
		j.Canonicalize()
		if err := insist(ctx, func() error { _, err := c.writer.RegisterJob(ctx, j, cluster.JobRegistration{}); return err }); err != nil {
			return err
		}
	}
	return nil
}

// insist retries a write while a newly elected leader still refuses it.
func insist(ctx context.Context, write func() error) error {
	for {
		err := write()
		passes := errors.Is(err, httpapi.ErrNotLeader) || errors.Is(err, httpapi.ErrUnavailable)
		if !passes || !cli.Pause(ctx, time.Millisecond) {
			return err
		}
	}
}

// Report takes the clients' reports.
func (c *scriptCluster) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	c.running.Go(func() {
		_, err := c.writer.ReportAllocs(c.life, reports)
		reply(err == nil)
	})
	return true
}

// stop stops the clients, then the server.
func (c *scriptCluster) stop() error {
	c.end()
	c.running.Wait()
	if c.api != nil {
		c.api.Close()
	}
	return c.Agent.Stop()
}

// awaitRunning waits until every allocation runs and has a verdict.
func (c *scriptCluster) awaitRunning(ctx context.Context) error {
	healthy := 0
	return c.await(ctx, func() (bool, error) {
		healthy = 0
		state := c.Server().Store().Snapshot()
		for a := range state.Allocs() {
			if a.ClientStatus == cluster.ClientRunning && (a.HasVerdict() || a.JobType() != cluster.JobService) {
				healthy++
			}
		}
		if healthy > scriptAllocs {
			return false, fmt.Errorf("%d allocations run instead of %d", healthy, scriptAllocs)
		}
		return healthy == scriptAllocs, nil
	})
}

// await checks a condition after every change of the state, until it holds.
func (c *scriptCluster) await(ctx context.Context, holds func() (bool, error)) error {
	for {
		changed := c.Server().Store().Snapshot().Index()
		if done, err := holds(); done || err != nil {
			return err
		}
		for c.Server().Store().Snapshot().Index() == changed {
			if !cli.Pause(ctx, time.Millisecond) {
				return context.Cause(ctx)
			}
		}
	}
}
