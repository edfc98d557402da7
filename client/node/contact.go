package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/session"
)

// Servers are the servers of the node's cluster. All methods are safe for concurrent use and return
// when their context ends.
type Servers interface {
	// Register registers the node, and Heartbeat says that it is alive. Both return the time within
	// which the servers expect the next heartbeat. The error of Heartbeat wraps [ErrNotRegistered]
	// if the servers do not know the node.
	Register(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error)
	Heartbeat(ctx context.Context) (ttl time.Duration, err error)
	// Changes returns the node's allocations that the servers have changed since the answer with
	// this cluster and index. It waits for a change, up to a time that the implementation chooses.
	// With index zero it returns all allocations.
	Changes(ctx context.Context, clusterID string, index uint64) (client.Wanted, error)
	// Report reports the node's allocations.
	Report(ctx context.Context, reports []cluster.AllocReport) error
	// OpenSession opens a session with a server, for requests of the servers to the node. After an
	// error and after the end of a session, the next call may use another server. The error wraps a
	// [session.Refused] if the server answers and refuses a session.
	OpenSession(ctx context.Context) (*session.NodeEnd, error)
	// AcceptAnonymous reports whether a server accepts jobs without a token.
	AcceptAnonymous(ctx context.Context) (bool, error)
}

// ErrNotRegistered says that the servers do not know the node. The node registers again.
var ErrNotRegistered = errors.New("the node is not registered")

const (
	// retryInterval is the wait before a failed request is retried.
	retryInterval = 500 * time.Millisecond
	// firstTimeout is the timeout of the first registration. Servers without a leader wait for one.
	firstTimeout = 10 * time.Second
	// reportTimeout is the timeout of one attempt to report.
	reportTimeout = 10 * time.Second
)

// contact registers the node, sends its heartbeats and reports, and passes changes of allocations
// to the core.
type contact struct {
	servers Servers
	logger  *slog.Logger
	// heard is called after each answered heartbeat, with the time when it was sent. wanted is
	// called with each answer of Changes. Each of them is called by one goroutine.
	heard  func(sent time.Duration)
	wanted func(client.Wanted)

	// registered is closed after the first registration.
	registered chan struct{}
	// changed has capacity 1. It holds a value if the node has changed since its registration.
	changed chan struct{}

	mu   sync.Mutex
	node *cluster.Node // what to register; it is replaced and never written to; guarded by mu
}

func newContact(n *cluster.Node, s Servers, logger *slog.Logger) *contact {
	return &contact{
		servers: s, logger: logger, node: n, heard: func(time.Duration) {}, wanted: func(client.Wanted) {},
		registered: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// publish makes keepAlive register the node with these facts. It owns them. It leaves out devices
// that the servers would refuse: a node that cannot register sends no heartbeats, and loses its
// tasks.
func (c *contact) publish(facts client.NodeFacts) {
	c.change(func(n *cluster.Node) {
		var err, refused error
		n.Drivers = facts.Drivers
		if n.Devices, err = cluster.UsableDevices(facts.Devices); err != nil {
			c.logger.Error("the servers would refuse some devices of the node; the client registers the node without these", "error", err)
		}
		if refused = n.CheckDevices(); refused != nil {
			c.logger.Error("the servers would refuse the devices of the node; the client registers the node without devices", "error", refused)
			n.Devices = nil
		}
		n.Attributes = withProblems(n.Attributes, facts.DeviceProblems, errors.Join(err, refused))
	})
}

// maxProblem is the longest text about the devices of one plugin, in bytes.
const maxProblem = 1024

// withProblems returns a copy of a node's attributes with the problems of the devices by plugin, and
// with what the servers would refuse, or nil.
func withProblems(attributes, problems map[string]string, refused error) map[string]string {
	all := maps.Clone(attributes)
	maps.DeleteFunc(all, func(name, _ string) bool {
		return name == cluster.DeviceProblem || strings.HasPrefix(name, cluster.DeviceProblem+".")
	})
	set := func(name, text string) {
		if text = strings.ReplaceAll(text, "\n", "; "); len(text) > maxProblem {
			text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
		}
		if all == nil {
			all = make(map[string]string)
		}
		all[name] = text
	}
	for plugin, text := range problems {
		set(cluster.DeviceProblem+"."+plugin, text)
	}
	if refused != nil {
		set(cluster.DeviceProblem, refused.Error())
	}
	return all
}

// publishStorage makes keepAlive register the node with these storage plugins. It owns them. It
// leaves them out if the servers would refuse them.
func (c *contact) publishStorage(plugins []*cluster.StoragePlugin) {
	c.change(func(n *cluster.Node) {
		n.StoragePlugins = plugins
		if err := n.CheckStoragePlugins(); err != nil {
			c.logger.Error("the servers would refuse the storage plugins of the node; the client registers the node without them", "error", err)
			n.StoragePlugins = nil
		}
	})
}

// change makes keepAlive register a changed copy of the node.
func (c *contact) change(change func(*cluster.Node)) {
	c.mu.Lock()
	after := *c.node
	change(&after)
	c.node = &after
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default: // a change is already pending
	}
}

func (c *contact) newest() *cluster.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node
}

// keepAlive registers the node, again when it has changed, and sends heartbeats, until the context
// ends.
func (c *contact) keepAlive(ctx context.Context) {
	var known *cluster.Node // as the servers know it, or nil
	timeout := firstTimeout
	var failures failureLog
	first := true
	for ctx.Err() == nil {
		node, sent, refused := c.newest(), bootclock.Now(), false
		var ttl time.Duration
		var err error
		attempt, end := context.WithTimeout(ctx, timeout)
		if known == node {
			ttl, err = c.servers.Heartbeat(attempt)
		} else if ttl, err = c.servers.Register(attempt, node); err == nil {
			known = node
		} else if known != nil {
			// The node still sends heartbeats with its old registration. Otherwise it would lose
			// its tasks because the servers refuse a change of the node.
			failures.note(ctx, c.logger, "registration", err)
			ttl, err = c.servers.Heartbeat(attempt)
			refused = err == nil
		}
		end()
		wait := retryInterval
		switch {
		case err == nil:
			// A third: a heartbeat may be lost, and the next one go to another server.
			wait = ttl / 3
			timeout = max(wait, retryInterval)
			c.heard(sent)
			if !refused && failures.over() || first {
				c.logger.Info("the servers know the node", "node", node.ID, "ttl", ttl)
			}
			if first {
				close(c.registered)
				first = false
			}
		case errors.Is(err, ErrNotRegistered):
			known, wait = nil, 0
		default:
			failures.note(ctx, c.logger, "heartbeat or registration", err)
		}
		c.pause(ctx, wait, err == nil)
	}
}

// pause waits for a time. If wake is set, a change of the node ends the wait.
func (c *contact) pause(ctx context.Context, d time.Duration, wake bool) {
	var changed chan struct{}
	if wake {
		changed = c.changed
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-changed:
	}
}

// listen passes changes of allocations to wanted, after the first registration and until the
// context ends.
func (c *contact) listen(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-c.registered:
	}
	var clusterID string
	var index uint64
	var failures failureLog
	for ctx.Err() == nil {
		w, err := c.servers.Changes(ctx, clusterID, index)
		if err == nil && w.ClusterID == "" {
			err = errors.New("the server does not name its cluster")
		}
		if err != nil {
			failures.note(ctx, c.logger, "changes of allocations", err)
			c.pause(ctx, retryInterval, false)
			continue
		}
		failures.over()
		clusterID, index = w.ClusterID, w.Index
		c.wanted(w)
	}
}

// report sends reports once. It returns whether the servers have them.
func (c *contact) report(ctx context.Context, reports []cluster.AllocReport) bool {
	attempt, end := context.WithTimeout(ctx, reportTimeout)
	defer end()
	err := c.servers.Report(attempt, reports)
	if err != nil && ctx.Err() == nil {
		c.logger.Warn("a report of allocations failed, and the client retries", "allocs", len(reports), "error", err)
	}
	return err == nil
}

// failureLog logs each failure of a series once. A success ends the series.
type failureLog struct{ seen map[string]bool }

// maxSeen bounds the failures that a series remembers: a plugin may invent new ones for ever.
const maxSeen = 16

// note logs a failed request. The text of an error may contain a port, which differs at each
// attempt. The cause does not.
func (f *failureLog) note(ctx context.Context, logger *slog.Logger, what string, err error) {
	cause := err
	for next := errors.Unwrap(cause); next != nil; next = errors.Unwrap(cause) {
		cause = next
	}
	if ctx.Err() == nil && f.isNew(cause) {
		logger.Warn("a request to the servers failed", "request", what, "error", err)
	}
}

// isNew reports whether the series had no such failure.
func (f *failureLog) isNew(err error) bool {
	text := err.Error()
	if f.seen[text] {
		return false
	}
	if f.seen == nil || len(f.seen) == maxSeen {
		f.seen = make(map[string]bool)
	}
	f.seen[text] = true
	return true
}

// over ends a series of failures, and reports whether there was one.
func (f *failureLog) over() bool {
	was := len(f.seen) > 0
	f.seen = nil
	return was
}
