package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// heartbeats keep the heartbeat timers of all nodes while the server leads. Each term begins with
// new timers, so that no timer of an earlier term marks a node down.
type heartbeats struct {
	options heartbeat.Options
	logger  hclog.Logger
	// server is set before the first term begins.
	server *server.Server
	// ready is closed when server is set.
	ready chan struct{}
	// wake has capacity 1. It holds a value when the timers need a step.
	wake chan struct{}

	mu     sync.Mutex
	timers *heartbeat.Timers // of the present term, or nil; guarded by mu
	// received counts the requests of each node that arrived and wait for a write; guarded by mu.
	received map[cluster.NodeID]int
	// started is closed when a term creates timers, and replaced when the term ends; guarded by mu.
	started chan struct{}
}

func newHeartbeats(o heartbeat.Options, logger hclog.Logger) *heartbeats {
	return &heartbeats{options: o, logger: logger, ready: make(chan struct{}), wake: make(chan struct{}, 1), started: make(chan struct{}), received: make(map[cluster.NodeID]int)}
}

// during runs the write of a request that arrived from a node. The node is alive until the write
// ends, however long it takes: its client waits for the answer, and sends nothing meanwhile.
func (h *heartbeats) during(id cluster.NodeID, write func() error) error {
	h.mu.Lock()
	h.received[id]++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.renew(time.Now())
		if h.received[id]--; h.received[id] == 0 {
			delete(h.received, id)
		}
	}()
	return write()
}

// renew counts the requests that wait for a write as heartbeats. The caller holds mu.
func (h *heartbeats) renew(now time.Time) {
	if h.timers == nil {
		return
	}
	for id := range h.received {
		h.timers.Renew(id, now)
	}
}

// record records a heartbeat of a node, and returns the time until the next one is due. It waits
// until a new leader has created its timers. Call it when the state contains the entries of earlier
// leaders.
func (h *heartbeats) record(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	for {
		h.mu.Lock()
		if h.timers != nil {
			ttl = h.timers.Heartbeat(id, time.Now())
			h.signal()
			h.mu.Unlock()
			return ttl, nil
		}
		started := h.started
		h.mu.Unlock()
		if !h.server.Leads() {
			return 0, httpapi.ErrNotLeader
		}
		select {
		case <-started:
		case <-time.After(termInterval): // leadership may have been lost
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", httpapi.ErrUnknown, context.Cause(ctx))
		}
	}
}

// termInterval is the wait between two checks of leadership or of the state.
const termInterval = 100 * time.Millisecond

// applied starts the timer of each node that an entry registers or makes ready, even if the caller
// of that write has disconnected. It deletes the timers of deleted nodes. It is called after each
// entry, in the order of the log.
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
		return // the next term starts the timers of all nodes
	}
	for _, id := range nodes {
		switch n := a.After.Node(id); {
		case n == nil:
			h.timers.Forget(id)
		case n.Reachable(): // the timer of a disconnected node stays as it is
			h.timers.Expect([]cluster.NodeID{id}, time.Now())
		}
	}
	h.signal()
}

// lead runs the timers of one term, until its context ends. It owns a goroutine for each write of a
// status in progress.
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

// begin creates the timers of a term and starts them for all nodes that are not down. It returns
// false if the term ends first.
func (h *heartbeats) begin(ctx context.Context) bool {
	timers := heartbeat.New(h.options, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	h.mu.Lock()
	h.timers = timers
	close(h.started)
	h.mu.Unlock()
	for {
		err := h.server.CaughtUp(ctx)
		if err == nil {
			break
		}
		h.logger.Debug("the heartbeat timers wait for the entries of earlier leaders", "error", err)
		select {
		case <-ctx.Done():
			h.end()
			return false
		case <-time.After(termInterval):
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
	h.timers, h.started = nil, make(chan struct{})
}

func (h *heartbeats) step() ([]heartbeat.Change, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.renew(now)
	return h.timers.Step(now)
}

// awaitInterval is how often the leader checks whether a disconnected node is down: its last awaited
// allocation may end before its time, such as one of a job that an operator stops.
const awaitInterval = 5 * time.Second

// write writes a change of status and reports the outcome to the timers.
func (h *heartbeats) write(ctx context.Context, c heartbeat.Change) {
	request, until := h.due(c)
	var err error
	if request != "" {
		_, err = h.server.Requests().UpdateNodeStatus(ctx, c.Node, request)
		_, until = h.due(c)
	}
	gone := errors.Is(err, statestore.ErrNodeNotFound)
	switch n := h.server.Store().Snapshot().Node(c.Node); {
	case request == "" || gone:
	case err != nil:
		h.logger.Warn("writing the status of a node failed", "node", c.Node, "status", request, "error", err)
	case n != nil:
		h.logger.Info("changed a node's status by its heartbeats", "node", c.Node, "status", n.Status)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timers == nil {
		return
	}
	now := time.Now()
	if again := now.Add(awaitInterval); err == nil && !until.IsZero() {
		if until.Before(again) {
			again = until
		}
		h.timers.Await(c, again, now)
	} else {
		h.timers.WriteDone(c, err == nil || gone, now)
	}
	h.signal()
}

// due returns the status to request for a change, or "" if the node has it. until is when the node is due
// again, or zero. The FSM decides between disconnected and down, in the state of the apply.
func (h *heartbeats) due(c heartbeat.Change) (request cluster.NodeStatus, until time.Time) {
	state := h.server.Store().Snapshot()
	request, status := c.Status, c.Status
	if c.Status == cluster.NodeDown && state.ClusterVersion() >= cluster.VersionOfConfirmation {
		request = cluster.NodeDisconnected
		status, until = scheduler.AwayStatus(state.WorkView(), c.Node, time.Now())
	}
	if n := state.Node(c.Node); n != nil && n.Status == status {
		return "", until
	}
	return request, until
}

func (h *heartbeats) signal() {
	select {
	case h.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}
