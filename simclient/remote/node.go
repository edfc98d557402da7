package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// node sends the requests of one node. It is safe for concurrent use.
type node struct {
	self *cluster.Node
	// servers use the node's secret as their token, registrars the token that may register;
	// both are in the order of [Config].Addresses.
	servers, registrars []*client.Client
	// at is the index of the server to ask, modulo their number.
	at atomic.Uint64
}

var _ Servers = (*node)(nil)

// newNode is the ith node, which asks the ith server first.
func newNode(c *Config, self *cluster.Node, i int) (*node, error) {
	n := &node{self: self}
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

// callTimeout bounds the answer of a server, which may have died. newsInterval is how long a
// server waits for a change before it answers that there is none.
const (
	callTimeout  = 10 * time.Second
	newsInterval = 30 * time.Second
)

// ask asks a server. If the server failed, the next request goes to the next server.
func (n *node) ask(servers []*client.Client, ask func(*client.Client) error) error {
	at := n.at.Load()
	err := ask(servers[at%uint64(len(servers))])
	if err != nil && !client.Refused(err) {
		n.at.CompareAndSwap(at, at+1)
	}
	return err
}

// RegisterNode registers the node.
func (n *node) RegisterNode(ctx context.Context, self *cluster.Node) (ttl time.Duration, err error) {
	err = n.ask(n.registrars, func(c *client.Client) error {
		ttl, err = c.Register(ctx, self)
		return err
	})
	return ttl, err
}

// Heartbeat sends a heartbeat.
func (n *node) Heartbeat(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	err = n.ask(n.servers, func(c *client.Client) error {
		ttl, err = c.Heartbeat(ctx, id)
		return err
	})
	if unknown(err) {
		err = fmt.Errorf("%w: %w", ErrNotRegistered, err)
	}
	return ttl, err
}

// unknown reports whether a server does not know the node.
func unknown(err error) bool {
	answer, is := errors.AsType[*client.Error](err)
	return client.NotFound(err) || is && strings.Contains(answer.Body, "node not found")
}

// allocs reads the node's allocations. With an index it waits for a change, up to
// newsInterval.
func (n *node) allocs(ctx context.Context, index uint64) (allocs []*cluster.Allocation, newest uint64, err error) {
	timeout := callTimeout
	if index > 0 {
		timeout += newsInterval + newsInterval/16 // the servers add a sixteenth, to spread their readers
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = n.ask(n.servers, func(c *client.Client) error {
		list, a, err := c.NodeAllocations(ctx, string(n.self.ID), client.Query{Index: index, Wait: newsInterval})
		if err != nil {
			return err
		}
		for _, one := range list {
			alloc, err := one.Allocation()
			if err != nil {
				return fmt.Errorf("allocation %s: %w", one.ID, err)
			}
			allocs = append(allocs, alloc)
		}
		newest = a.Index
		return nil
	})
	return allocs, newest, err
}

// report reports the node's allocations.
func (n *node) report(ctx context.Context, reports []cluster.AllocReport) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return n.ask(n.servers, func(c *client.Client) error {
		_, err := c.ReportAllocs(ctx, n.self.ID, reports)
		return err
	})
}
