package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// Config names the nodes and the servers. Addresses and Nodes are required.
type Config struct {
	// Addresses are the URLs of servers' APIs, in the form of
	// [client.Config].Address. Any server will do: it forwards requests to the leader.
	Addresses []string
	// Token registers the nodes, and is needed for nothing else; empty is none.
	Token string
	// TLS is for addresses that begin with https.
	TLS client.TLS
	// Nodes are the nodes of the clients, each with an id, a secret and the status ready.
	// Run does not write to them.
	Nodes []*cluster.Node
	// Fleet configures the behaviour of the clients; Run sets its Snapshot and Applier.
	Fleet simclient.Options
	// Logger receives failed requests, see [Failures]; nil logs nothing.
	Logger hclog.Logger
	// Registered is called after each registration of a node, by many goroutines;
	// or nil.
	Registered func(cluster.NodeID)
}

// Run runs the clients until the context ends. The error names the mistake in the
// configuration.
func Run(ctx context.Context, c Config) error {
	r, err := newRunner(c)
	if err != nil {
		return fmt.Errorf("remote: %w", err)
	}
	r.run(ctx)
	return nil
}

// runner is one call of Run.
type runner struct {
	config   Config
	replica  *replica
	fleet    *simclient.Fleet
	failures *Failures
	// ctx ends reports under way; run sets it.
	ctx     context.Context
	nodes   map[cluster.NodeID]*node
	running sync.WaitGroup
}

func newRunner(c Config) (*runner, error) {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	switch {
	case len(c.Addresses) == 0:
		return nil, errors.New("Config.Addresses is required")
	case len(c.Nodes) == 0:
		return nil, errors.New("Config.Nodes is required")
	}
	r := &runner{config: c, replica: newReplica(c.Nodes), failures: NewFailures(c.Logger), nodes: make(map[cluster.NodeID]*node, len(c.Nodes))}
	for i, n := range c.Nodes {
		if n == nil || n.ID == "" || n.SecretID == "" {
			return nil, fmt.Errorf("node %d has no id or no secret", i)
		}
		one, err := newNode(&c, n, i, func(allocs []*cluster.Allocation) { r.replica.set(n.ID, allocs) })
		if err != nil {
			return nil, err
		}
		r.nodes[n.ID] = one
	}
	c.Fleet.Snapshot = func() simclient.State { return r.replica }
	c.Fleet.Applier = r
	var err error
	r.fleet, err = simclient.New(c.Fleet)
	return r, err
}

func (r *runner) run(ctx context.Context) {
	r.ctx = ctx
	for _, n := range r.nodes {
		r.running.Go(func() { r.keepAlive(ctx, n) })
	}
	r.fleet.Run(ctx)
	r.running.Wait()
	for _, n := range r.nodes {
		n.close()
	}
}

// keepAlive keeps a node alive, and reads its allocations once it is registered.
func (r *runner) keepAlive(ctx context.Context, n *node) {
	var once sync.Once
	KeepAlive(ctx, n, n.self, r.failures, func() {
		once.Do(func() { r.running.Go(func() { r.listen(ctx, n) }) })
		select {
		case n.back <- struct{}{}:
		default: // it holds a value already
		}
		if r.config.Registered != nil {
			r.config.Registered(n.self.ID)
		}
	})
}

// listen keeps the replica up to date with the allocations of a node. After a failure it waits, or until
// the node has registered again.
func (r *runner) listen(ctx context.Context, n *node) {
	var backoff presence.Backoff
	random := newRandom()
	for ctx.Err() == nil {
		changed, err := n.readAllocs(ctx)
		if err != nil && ctx.Err() == nil {
			if errors.Is(err, client.ErrOtherCluster) {
				err = fmt.Errorf("the node keeps what it runs and learns nothing new; restart its client if the node belongs to that cluster: %w", err)
			}
			r.failures.failed(changesRequest, n.self.ID, err)
			pause(ctx, backoff.Next(maxRetry, random), n.back)
			continue
		}
		backoff.Reset()
		r.failures.succeeded(changesRequest, n.self.ID)
		if changed {
			r.fleet.Changed(n.self.ID)
		}
	}
}

// Report sends each node's part of a batch. If one node fails, the fleet repeats the whole
// batch, which is harmless.
func (r *runner) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	byNode := make(map[cluster.NodeID][]cluster.AllocReport)
	for _, report := range reports {
		byNode[report.Node] = append(byNode[report.Node], report)
	}
	r.running.Go(func() {
		var parts sync.WaitGroup
		var mu sync.Mutex
		failed := false
		for id, part := range byNode {
			parts.Go(func() {
				err := r.nodes[id].report(r.ctx, part)
				if err == nil {
					r.failures.succeeded(reportRequest, id)
					return
				}
				if r.ctx.Err() == nil {
					r.failures.failed(reportRequest, id, err)
				}
				mu.Lock()
				failed = true
				mu.Unlock()
			})
		}
		parts.Wait()
		reply(!failed)
	})
	return true
}
