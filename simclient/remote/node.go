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

// node asks the servers for one node. It is safe for concurrent use.
type node struct {
	self *cluster.Node
	// servers have the node's secret for a token, registrars the one that may
	// register; both are in the order of [Config].Addresses.
	servers, registrars []*client.Client
	// at is which of them to ask, modulo their number.
	at atomic.Uint64
}

var _ Servers = (*node)(nil)

// newNode is the ith node, which begins with the ith server.
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

// callTimeout is how long a server may take to answer, newsInterval how long one waits
// for news before it says that there is none. Whoever is asked may be gone without a
// word.
const (
	callTimeout  = 10 * time.Second
	newsInterval = 30 * time.Second
)

// ask asks a server, and has the next one be asked next if there was no use in it.
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

// Heartbeat has the node heard.
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

// allocs waits for news of what is on the node, for a while; without an index it does
// not wait.
func (n *node) allocs(ctx context.Context, index uint64) (allocs []*cluster.Allocation, newest uint64, err error) {
	patience := callTimeout
	if index > 0 {
		patience += newsInterval + newsInterval/16 // the servers add that, to spread their readers
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// report says how the node's allocations are.
func (n *node) report(ctx context.Context, reports []cluster.AllocReport) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return n.ask(n.servers, func(c *client.Client) error {
		_, err := c.ReportAllocs(ctx, n.self.ID, reports)
		return err
	})
}
