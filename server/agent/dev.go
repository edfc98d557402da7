package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// DevConfig configures a [Dev]. The zero value is valid.
type DevConfig struct {
	// Agent is the server's configuration. NewDev sets DataDir, Voters, BootstrapExpect, Join, Raft,
	// ServerTLS and PeerSecret for a single server in memory, without a port for other servers.
	Agent Config
	// Clients is the number of simulated clients. Zero is [DefaultDevClients], a negative number is
	// none.
	Clients int
	// NoJobs omits the example jobs.
	NoJobs bool
	// Fleet configures the behaviour of the clients. NewDev sets its Snapshot and Applier.
	Fleet simclient.Options
}

// DefaultDevClients is the default of [DevConfig].Clients.
const DefaultDevClients = 5

// Dev is a cluster in one process and in memory, to try drains: a server, simulated clients and
// some jobs. Build it with [NewDev] and end it with [Dev.Stop].
type Dev struct {
	*Agent
	fleet *simclient.Fleet // or nil

	// life ends when Stop begins.
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// NewDev starts a cluster. It returns when the cluster has a leader, and its nodes and jobs are
// registered.
func NewDev(ctx context.Context, c DevConfig) (*Dev, error) {
	switch {
	case c.Clients == 0:
		c.Clients = DefaultDevClients
	case c.Clients < 0:
		c.Clients = 0
	}
	d := &Dev{}
	d.life, d.end = context.WithCancel(context.Background())
	observe := c.Agent.OnApply
	c.Agent.OnApply = func(a shims.Applied) {
		if d.fleet != nil {
			d.fleet.Changed(changedNodes(a)...)
		}
		if observe != nil {
			observe(a)
		}
	}
	c.Agent.DataDir, c.Agent.Voters, c.Agent.Join, c.Agent.BootstrapExpect, c.Agent.LeaveOnStop = "", nil, nil, 1, false
	c.Agent.ServerTLS, c.Agent.PeerSecret = nil, nil // no port for other servers
	c.Agent.Raft = devRaft()
	if c.Clients > 0 {
		c.Fleet.Applier = d
		c.Fleet.Snapshot = func() simclient.State { return d.Agent.server.Store().Snapshot().WorkView() }
		fleet, err := simclient.New(c.Fleet)
		if err != nil {
			return nil, err
		}
		d.fleet = fleet // before the server applies entries
	}
	var err error
	if d.Agent, err = New(c.Agent); err != nil {
		return nil, err
	}
	if err := d.begin(ctx, c); err != nil {
		return nil, fmt.Errorf("dev: %w", errors.Join(err, d.Stop()))
	}
	return d, nil
}

// devRaft returns settings with which the only server becomes the leader within milliseconds.
func devRaft() *raft.Config {
	c := raft.DefaultConfig()
	c.BatchApplyCh = true
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	return c
}

// begin registers nodes and jobs, and starts the clients.
func (d *Dev) begin(ctx context.Context, c DevConfig) error {
	if err := d.Ready(ctx); err != nil {
		return err
	}
	w := d.Backend().Writer
	nodes := devNodes(c.Clients)
	for _, n := range nodes {
		if err := retryWrite(ctx, func() error { _, err := w.RegisterNode(ctx, n); return err }); err != nil {
			return fmt.Errorf("registering %s: %w", n.Name, err)
		}
	}
	if !c.NoJobs {
		for _, j := range devJobs(c.Clients) {
			if err := retryWrite(ctx, func() error { _, err := w.RegisterJob(ctx, j, nil); return err }); err != nil {
				return fmt.Errorf("registering job %s: %w", j.ID, err)
			}
		}
	}
	if d.fleet != nil {
		d.running.Go(func() { d.fleet.Run(d.life) })
	}
	failures := remote.NewFailures(d.config.Logger.Named("clients"))
	for _, n := range nodes {
		d.running.Go(func() { remote.KeepAlive(d.life, inProcess{w}, n, failures, nil) })
	}
	return nil
}

// retryWrite repeats a write while a new leader is not ready for writes.
func retryWrite(ctx context.Context, write func() error) error {
	for {
		err := write()
		if !errors.Is(err, httpapi.ErrNotLeader) && !errors.Is(err, httpapi.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(readyInterval):
		}
	}
}

// inProcess gives clients of the same process access to the server.
type inProcess struct{ httpapi.Writer }

// Heartbeat sends a heartbeat. A node that was purged learns that it must register again.
func (s inProcess) Heartbeat(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	ttl, err = s.Writer.Heartbeat(ctx, id)
	if errors.Is(err, httpapi.ErrNotFound) {
		err = fmt.Errorf("%w: %w", presence.ErrNotRegistered, err)
	}
	return ttl, err
}

var (
	_ remote.Servers    = inProcess{}
	_ simclient.Applier = (*Dev)(nil)
)

// Report writes reports of the fleet. The fleet has at most one batch in flight.
func (d *Dev) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	d.running.Go(func() {
		_, err := d.Backend().Writer.ReportAllocs(d.life, reports)
		reply(err == nil)
	})
	return true
}

// Stop ends the clients, then the agent, and waits for both.
func (d *Dev) Stop() error {
	d.end()
	d.running.Wait()
	return d.Agent.Stop()
}

// devNodes returns the nodes of a small data center.
func devNodes(n int) []*cluster.Node {
	nodes := make([]*cluster.Node, n)
	for i := range nodes {
		nodes[i] = &cluster.Node{
			ID: cluster.NodeID(uuid.NewString()), SecretID: uuid.NewString(), Name: "dev-" + strconv.Itoa(i+1),
			Datacenter: "dc1", NodeClass: "dev", HTTPAddr: "127.0.0.1:0", Status: cluster.NodeReady,
			Attributes: map[string]string{"os.name": "simulated", "nomad.version": "0.0.0-dev"},
			Resources:  cluster.Resources{CPU: 4000, MemoryMB: 8192, DiskMB: 100 << 10},
		}
	}
	return nodes
}

// devJobs returns jobs of all types, with counts that leave the nodes capacity for each other's
// allocations.
func devJobs(nodes int) []*cluster.Job {
	job := func(id cluster.JobID, kind cluster.JobType, count int, r cluster.Resources) *cluster.Job {
		return &cluster.Job{ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{{
			Name: "main", Count: count, Tasks: []*cluster.Task{{Name: "main", Resources: r, KillTimeout: 5 * time.Second}},
		}}}
	}
	small := cluster.Resources{CPU: 500, MemoryMB: 256}
	web := job("web", cluster.JobService, max(1, 2*nodes), small)
	web.TaskGroups[0].Migrate = cluster.DefaultMigrateStrategy()
	api := job("api", cluster.JobService, max(1, nodes/2), small)
	return []*cluster.Job{web, api, job("report", cluster.JobBatch, max(1, nodes/2), small), job("logs", cluster.JobSystem, 1, cluster.Resources{CPU: 100, MemoryMB: 64})}
}

// changedNodes returns the nodes whose clients an applied entry may concern, sorted and without
// duplicates.
func changedNodes(a shims.Applied) []cluster.NodeID {
	var nodes []cluster.NodeID
	addNodesOf := func(id cluster.AllocID) {
		for _, alloc := range []*cluster.Allocation{a.Before.Alloc(id), a.After.Alloc(id)} {
			if alloc != nil {
				nodes = append(nodes, alloc.NodeID)
			}
		}
	}
	switch m := a.Message.(type) {
	case *shims.NodeRegister:
		nodes = append(nodes, m.Node.ID)
	case *shims.NodeDeregister:
		nodes = append(nodes, m.Nodes...)
	case *shims.NodeUpdateStatus:
		nodes = append(nodes, m.Node)
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			nodes = append(nodes, r.Node)
		}
	case *shims.ApplyPlan:
		for _, s := range m.Stops {
			addNodesOf(s.Alloc)
		}
		for _, p := range m.Places {
			nodes = append(nodes, p.NodeID)
		}
	case *shims.JobDeregister:
		for alloc := range a.Before.AllocsByJob(m.Job) {
			nodes = append(nodes, alloc.NodeID)
		}
	}
	slices.SortFunc(nodes, cmp.Compare[cluster.NodeID])
	return slices.Compact(nodes)
}
