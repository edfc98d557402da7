package remote

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// node sends the requests of one node. It is safe for concurrent use.
type node struct {
	self *cluster.Node
	// servers use the node's secret as their token, registrars the token that may register;
	// both are in the order of [Config].Addresses.
	servers, registrars []*client.Client
	// at is the index of the server for the next request, modulo their number.
	at atomic.Uint64
	// back has capacity 1. It holds a value if the node has registered since the last failed request for
	// changes.
	back chan struct{}
	// show is called with the node's allocations that are not client-terminal, each time that they
	// may have changed, one call at a time.
	show func([]*cluster.Allocation)

	mu sync.Mutex
	// known are the node's allocations; guarded by mu.
	known client.NodeAllocs
}

var _ Servers = (*node)(nil)

// newNode is the ith node, whose first requests go to the ith server.
func newNode(c *Config, self *cluster.Node, i int, show func([]*cluster.Allocation)) (*node, error) {
	n := &node{self: self, back: make(chan struct{}, 1), show: show}
	n.at.Store(uint64(i))
	for _, address := range c.Addresses {
		registrar, err := client.New(client.Config{Address: address, Token: c.Token, TLS: c.TLS})
		if err != nil {
			return nil, err
		}
		server, err := client.New(client.Config{Address: address, Token: self.SecretID, TLS: c.TLS})
		if err != nil {
			return nil, err
		}
		n.registrars, n.servers = append(n.registrars, registrar), append(n.servers, server)
	}
	return n, nil
}

func (n *node) close() {
	for i := range n.servers {
		n.servers[i].Close()
		n.registrars[i].Close()
	}
}

// callTimeout bounds the answer of a server, which may have died. changesInterval is how long a
// server waits for a change before it answers that there is none.
const (
	callTimeout     = 10 * time.Second
	changesInterval = 30 * time.Second
)

// send sends a request to a server. If the server failed, the next request goes to the next server.
func (n *node) send(servers []*client.Client, request func(*client.Client) error) error {
	at := n.at.Load()
	err := request(servers[at%uint64(len(servers))])
	if err != nil && !client.Refused(err) {
		n.at.CompareAndSwap(at, at+1)
	}
	return err
}

// RegisterNode registers the node.
func (n *node) RegisterNode(ctx context.Context, self *cluster.Node) (ttl time.Duration, err error) {
	err = n.send(n.registrars, func(c *client.Client) error {
		beat, err := c.Register(ctx, self)
		ttl = beat.HeartbeatTTL
		return err
	})
	return ttl, err
}

// Heartbeat sends a heartbeat.
func (n *node) Heartbeat(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	err = n.send(n.servers, func(c *client.Client) error {
		beat, err := c.NodeSide(id).Heartbeat(ctx)
		ttl = beat.HeartbeatTTL
		return err
	})
	if client.UnknownNode(err) {
		err = fmt.Errorf("%w: %w", presence.ErrNotRegistered, err)
	}
	return ttl, err
}

// readAllocs reads the changes of the node's allocations, and shows the result. If it has read a
// state before, it waits for a change, up to changesInterval. It returns whether something changed.
// Before and after that it reports the allocations that the node cannot read. One goroutine at a time
// calls it.
func (n *node) readAllocs(ctx context.Context) (changed bool, err error) {
	if err := n.reportUnreadable(ctx); err != nil {
		return false, err
	}
	if changed, err = n.readChanges(ctx); err != nil {
		return changed, err
	}
	return changed, n.reportUnreadable(ctx)
}

func (n *node) readChanges(ctx context.Context) (changed bool, err error) {
	n.mu.Lock()
	since := n.known.Since()
	n.mu.Unlock()
	timeout := callTimeout
	if since.Index > 0 {
		timeout += changesInterval + changesInterval/16 // the servers add a sixteenth, to spread their readers
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var changes client.Changes
	err = n.send(n.servers, func(c *client.Client) error {
		changes, err = c.NodeSide(n.self.ID).Changes(ctx, since, changesInterval)
		return err
	})
	if err != nil {
		return false, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if changed, err = n.known.Merge(changes); changed {
		n.show(n.known.All())
	}
	return changed, err
}

// reportUnreadable reports the allocations that the node cannot read as failed.
func (n *node) reportUnreadable(ctx context.Context) error {
	n.mu.Lock()
	var reports []cluster.AllocReport
	for _, u := range n.known.Unreadable() {
		reports = append(reports, cluster.AllocReport{
			Alloc: u.Alloc.ID, Node: n.self.ID, ClientStatus: cluster.ClientFailed, At: time.Now(),
			ClientDescription: cluster.CutText("the client cannot read the allocation: " + u.Reason),
		})
	}
	n.mu.Unlock()
	if len(reports) == 0 {
		return nil
	}
	return n.report(ctx, reports)
}

// report reports the node's allocations, and shows the result.
func (n *node) report(ctx context.Context, reports []cluster.AllocReport) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var index uint64
	err := n.send(n.servers, func(c *client.Client) (err error) {
		index, err = c.NodeSide(n.self.ID).ReportAllocs(ctx, reports)
		return err
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known.Reported(reports, index)
	n.show(n.known.All())
	return nil
}
