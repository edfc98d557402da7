package e2e

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// fleet simulates the clients of nodes over the HTTP API of any of several servers. A server of an older
// commit, from before clients ran real tasks, also serves it. Two goroutines run for each node.
type fleet struct {
	nodes   map[cluster.NodeID]*simulatedNode
	clients *simclient.Fleet
	running sync.WaitGroup
	ctx     context.Context
	end     context.CancelFunc

	mu sync.Mutex
	// changes counts the changes of allocations, and allocs are those of each node that are not
	// client-terminal; guarded by mu.
	changes uint64
	allocs  map[cluster.NodeID][]*cluster.Allocation
}

// simulatedNode sends the requests of one node.
type simulatedNode struct {
	self    *cluster.Node
	servers []*client.Client // with the secret of the node as the token

	mu    sync.Mutex
	at    int               // the server of the next request, modulo their number; guarded by mu
	known client.NodeAllocs // guarded by mu
}

var _ simclient.State = (*fleet)(nil)

// The time between two requests of a node, and the longest time until an answer.
const (
	fleetInterval = 200 * time.Millisecond
	fleetTimeout  = 5 * time.Second
)

// startFleet starts the clients. They end when stop is called, or with the test.
func startFleet(t testing.TB, addresses []string, nodes []*cluster.Node, options simclient.Options) (stop func()) {
	t.Helper()
	f := &fleet{nodes: map[cluster.NodeID]*simulatedNode{}, allocs: map[cluster.NodeID][]*cluster.Allocation{}}
	f.ctx, f.end = context.WithCancel(context.Background())
	options.Snapshot, options.Applier = func() simclient.State { return f }, f
	var err error
	f.clients, err = simclient.New(options)
	must.NoError(t, err)
	for i, self := range nodes {
		n := &simulatedNode{self: self, at: i}
		for _, address := range addresses {
			c, err := client.New(client.Config{Address: address, Token: self.SecretID})
			must.NoError(t, err)
			n.servers = append(n.servers, c)
		}
		f.nodes[self.ID] = n
	}
	f.running.Go(func() { f.clients.Run(f.ctx) })
	for _, n := range f.nodes {
		f.running.Go(func() { f.keepAlive(n) })
		f.running.Go(func() { f.follow(n) })
	}
	stop = sync.OnceFunc(func() {
		f.end()
		f.running.Wait()
		for _, n := range f.nodes {
			for _, c := range n.servers {
				c.Close()
			}
		}
	})
	t.Cleanup(stop)
	return stop
}

// send sends a request to a server. After a failure of a server the next request goes to the next one.
func (n *simulatedNode) send(ctx context.Context, timeout time.Duration, request func(context.Context, *client.Client) error) error {
	ctx, end := context.WithTimeout(ctx, timeout)
	defer end()
	n.mu.Lock()
	at := n.at
	n.mu.Unlock()
	err := request(ctx, n.servers[at%len(n.servers)])
	if err != nil && !client.Refused(err) {
		n.mu.Lock()
		n.at = at + 1
		n.mu.Unlock()
	}
	return err
}

// keepAlive registers a node, again when the servers do not have it, and sends its heartbeats.
func (f *fleet) keepAlive(n *simulatedNode) {
	registered := false
	for f.ctx.Err() == nil {
		err := n.send(f.ctx, fleetTimeout, func(ctx context.Context, c *client.Client) (err error) {
			if registered {
				_, err = c.NodeSide(n.self.ID).Heartbeat(ctx)
			} else {
				_, err = c.Register(ctx, n.self)
			}
			return err
		})
		if err == nil {
			registered = true
		} else if client.UnknownNode(err) {
			registered = false
		}
		f.pause()
	}
}

func (f *fleet) pause() {
	select {
	case <-f.ctx.Done():
	case <-time.After(fleetInterval):
	}
}

// follow reads the changes of a node's allocations.
func (f *fleet) follow(n *simulatedNode) {
	const wait = 2 * time.Second
	for f.ctx.Err() == nil {
		n.mu.Lock()
		since := n.known.Since()
		n.mu.Unlock()
		var changes client.Changes
		err := n.send(f.ctx, fleetTimeout+wait, func(ctx context.Context, c *client.Client) (err error) {
			changes, err = c.NodeSide(n.self.ID).Changes(ctx, since, wait)
			return err
		})
		if err != nil {
			f.pause()
			continue
		}
		n.mu.Lock()
		changed, _ := n.known.Merge(changes) // of another cluster in no test
		if changed {
			f.show(n)
		}
		n.mu.Unlock()
		if changed {
			f.clients.Changed(n.self.ID)
		}
	}
}

// Report sends each node's part of a batch. If one node fails, the simulated clients repeat the batch.
func (f *fleet) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	byNode := make(map[cluster.NodeID][]cluster.AllocReport)
	for _, report := range reports {
		byNode[report.Node] = append(byNode[report.Node], report)
	}
	f.running.Go(func() {
		errs := make([]error, len(byNode))
		var parts sync.WaitGroup
		for i, id := range slices.Sorted(maps.Keys(byNode)) {
			parts.Go(func() { errs[i] = f.report(f.nodes[id], byNode[id]) })
		}
		parts.Wait()
		reply(errors.Join(errs...) == nil)
	})
	return true
}

func (f *fleet) report(n *simulatedNode, reports []cluster.AllocReport) error {
	var answer wire.AllocsResponse
	err := n.send(f.ctx, fleetTimeout, func(ctx context.Context, c *client.Client) (err error) {
		answer, err = c.NodeSide(n.self.ID).ReportAllocs(ctx, reports)
		return err
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known.Reported(reports, answer.Index)
	f.show(n)
	return nil
}

// show replaces the allocations of a node. The caller holds the lock of the node.
func (f *fleet) show(n *simulatedNode) {
	all := n.known.All()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
	f.allocs[n.self.ID] = all
}

// Index counts the changes.
func (f *fleet) Index() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// Node returns a node of the fleet, or nil.
func (f *fleet) Node(id cluster.NodeID) *cluster.Node {
	if n := f.nodes[id]; n != nil {
		return n.self
	}
	return nil
}

// Nodes yields the nodes of the fleet, by id.
func (f *fleet) Nodes() iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for _, id := range slices.Sorted(maps.Keys(f.nodes)) {
			if !yield(f.nodes[id].self) {
				return
			}
		}
	}
}

// Alloc returns an allocation on a node of the fleet, or nil if there is none or it has ended.
func (f *fleet) Alloc(id cluster.AllocID) *cluster.Allocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, allocs := range f.allocs {
		for _, a := range allocs {
			if a.ID == id {
				return a
			}
		}
	}
	return nil
}

// Unconfirmed yields nothing: the answers of the servers contain only the end of an allocation once.
func (f *fleet) Unconfirmed(cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return func(func(*cluster.Allocation) bool) {}
}

// LiveAllocsByNode yields the allocations of a node that are not client-terminal.
func (f *fleet) LiveAllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	f.mu.Lock()
	allocs := f.allocs[id]
	f.mu.Unlock()
	return func(yield func(*cluster.Allocation) bool) {
		for _, a := range allocs {
			if !a.ClientTerminal() && !yield(a) {
				return
			}
		}
	}
}
