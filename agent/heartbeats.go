package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// heartbeats keep the heartbeats of all nodes while the server leads. Each term begins with new
// timers, so that no node is marked down because of an earlier leader's timers.
type heartbeats struct {
	options heartbeat.Options
	logger  hclog.Logger
	// server is set before the first term begins.
	server *server.Server
	// ready is closed when server is set.
	ready chan struct{}
	// wake has capacity 1 and is sent to, without blocking, when there is
	// something to step for.
	wake chan struct{}

	mu     sync.Mutex
	timers *heartbeat.Timers // of the present term, or nil; guarded by mu
	// begun is closed when timers are made, and replaced when they end; guarded by mu.
	begun chan struct{}
}

func newHeartbeats(o heartbeat.Options, logger hclog.Logger) *heartbeats {
	return &heartbeats{options: o, logger: logger, ready: make(chan struct{}), wake: make(chan struct{}, 1), begun: make(chan struct{})}
}

// heard records a heartbeat of a node, and returns the time until the next one is due. The state
// must show the entries of earlier leaders. It waits while a new leader has not begun to keep
// heartbeats.
func (h *heartbeats) heard(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	for {
		h.mu.Lock()
		if h.timers != nil {
			ttl = h.timers.Heard(id, time.Now())
			h.poke()
			h.mu.Unlock()
			return ttl, nil
		}
		begun := h.begun
		h.mu.Unlock()
		if !h.server.Leads() {
			return 0, httpapi.ErrNotLeader
		}
		select {
		case <-begun:
		case <-time.After(beginInterval): // leadership may have been lost
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", httpapi.ErrUnknown, context.Cause(ctx))
		}
	}
}

// beginInterval is the wait between two looks for the beginning of a term.
const beginInterval = 100 * time.Millisecond

// applied is called after each entry, in the order of the log. It expects heartbeats of every node
// that became ready, even if the caller of that write has disconnected, and forgets deleted nodes
// that did not come back.
func (h *heartbeats) applied(a shims.Applied) {
	var nodes []cluster.NodeID
	switch m := a.Message.(type) {
	case *shims.NodeRegister:
		nodes = []cluster.NodeID{m.Node.ID}
	case *shims.NodeUpdateStatus:
		nodes = []cluster.NodeID{m.Node}
	case *shims.NodeDeregister:
		nodes = m.Nodes
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timers == nil {
		return // a term that begins looks at all nodes
	}
	for _, id := range nodes {
		switch n := a.After.Node(id); {
		case n == nil:
			h.timers.Forget(id)
		case n.Status != cluster.NodeDown:
			h.timers.Expect([]cluster.NodeID{id}, time.Now())
		}
	}
	h.poke()
}

// lead keeps heartbeats for one term, until its context ends. It owns a goroutine
// for each change of status under way.
func (h *heartbeats) lead(ctx context.Context) {
	select {
	case <-h.ready:
	case <-ctx.Done():
		return
	}
	if !h.begin(ctx) {
		return
	}
	var writes sync.WaitGroup
	defer writes.Wait()
	defer h.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-timer.C:
		}
		changes, wakeAt := h.step()
		for _, c := range changes {
			writes.Go(func() { h.write(ctx, c) })
		}
		timer.Stop()
		if !wakeAt.IsZero() {
			timer.Reset(time.Until(wakeAt))
		}
	}
}

// begin makes the timers of a term, with all nodes that are not down. It returns false if the term
// ends first.
func (h *heartbeats) begin(ctx context.Context) bool {
	timers := heartbeat.New(h.options, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	h.mu.Lock()
	h.timers = timers
	close(h.begun)
	h.mu.Unlock()
	for {
		err := h.server.CaughtUp(ctx)
		if err == nil {
			break
		}
		h.logger.Debug("heartbeats wait for the state", "error", err)
		select {
		case <-ctx.Done():
			h.end()
			return false
		case <-time.After(beginInterval):
		}
	}
	var nodes []cluster.NodeID
	for n := range h.server.Store().Snapshot().Nodes() {
		if n.Status != cluster.NodeDown {
			nodes = append(nodes, n.ID)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	timers.Expect(nodes, time.Now())
	return true
}

func (h *heartbeats) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timers, h.begun = nil, make(chan struct{})
}

func (h *heartbeats) step() ([]heartbeat.Change, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.timers.Step(time.Now())
}

// write writes a change of status and settles it.
func (h *heartbeats) write(ctx context.Context, c heartbeat.Change) {
	var err error
	if n := h.server.Store().Snapshot().Node(c.Node); n == nil || n.Status != c.Status {
		_, err = h.server.UpdateNodeStatus(ctx, c.Node, c.Status)
	}
	gone := errors.Is(err, statestore.ErrNodeNotFound)
	switch {
	case err == nil:
		h.logger.Info("a node's status changed by its heartbeats", "node", c.Node, "status", c.Status)
	case !gone:
		h.logger.Warn("writing the status of a node", "node", c.Node, "status", c.Status, "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timers == nil {
		return
	}
	h.timers.Settle(c, err == nil || gone, time.Now())
	h.poke()
}

func (h *heartbeats) poke() {
	select {
	case h.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}
