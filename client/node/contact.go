package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/disks"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// Servers are the servers of the node's cluster. All methods are safe for concurrent use and return
// when their context ends.
type Servers interface {
	// Register registers the node, and Heartbeat sends its heartbeat. Both return the time within
	// which the servers expect the next heartbeat. The error of Heartbeat wraps
	// [presence.ErrNotRegistered] if the node is not registered.
	Register(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error)
	Heartbeat(ctx context.Context) (ttl time.Duration, err error)
	// Changes returns the node's allocations that the servers have changed since an answer. It waits for
	// a change, up to a time that the implementation chooses. For the zero value it returns all
	// allocations.
	Changes(ctx context.Context, since api.Since) (client.Changes, error)
	// Report reports the node's allocations.
	Report(ctx context.Context, reports []cluster.AllocReport) error
	// OpenSession opens a session with a server, for requests of the servers to the node. After an
	// error and after the end of a session, the next call may use another server. The error wraps a
	// [session.Refused] if the server answers and refuses a session.
	OpenSession(ctx context.Context) (*session.NodeEnd, error)
	// AcceptAnonymous reports whether a server accepts jobs without a token.
	AcceptAnonymous(ctx context.Context) (bool, error)
}

// DataServers are [Servers] that move the data of ephemeral disks.
type DataServers interface {
	Servers
	disks.Servers
}

const (
	// heartbeatsInTTL is the number of heartbeats in a TTL: a heartbeat may be lost, and the next one
	// go to another server.
	heartbeatsInTTL = 3
	// maxChangesRetry is the longest wait before a failed request for changes is retried.
	maxChangesRetry = 10 * time.Second
	// foreignInterval is the wait between two requests while the node ignores the servers.
	foreignInterval = 30 * time.Second
	// reportTimeout is the timeout of one attempt to report.
	reportTimeout = 10 * time.Second
)

// contact registers the node, sends its heartbeats and reports, and passes changes of allocations
// to the core.
type contact struct {
	servers Servers
	logger  *slog.Logger
	// answered is called after each answered heartbeat. receive is
	// called with each answer of Changes. foreign reports whether the node ignores the servers because
	// they belong to another cluster. Each of them is called by one goroutine.
	answered func(guard.Contact)
	receive  func(client.Changes)
	foreign  func() bool
	// forgotten is called when the servers do not have the node. It makes the core publish its facts.
	forgotten func()

	// failures logs failed requests.
	failures *failures

	// registered is closed after the first registration.
	registered chan struct{}
	// changed has capacity 1. It holds a value if the node may have changed since its registration.
	changed chan struct{}
	// back has capacity 1. It holds a value if the node has registered since the last failed request
	// for changes.
	back chan struct{}

	mu sync.Mutex
	// node is what to register. It is replaced and never written to; guarded by mu.
	node *cluster.Node
	// facts counts the changes of node; guarded by mu.
	facts uint64
	// renew: the next request for changes requests all allocations. endRequest ends the one in flight, or
	// is nil; guarded by mu.
	renew      bool
	endRequest context.CancelFunc
}

func newContact(n *cluster.Node, s Servers, logger *slog.Logger) *contact {
	return &contact{
		servers: s, logger: logger, node: n, answered: func(guard.Contact) {}, receive: func(client.Changes) {}, foreign: func() bool { return false }, forgotten: func() {},
		failures: newFailures(logger), registered: make(chan struct{}), changed: make(chan struct{}, 1), back: make(chan struct{}, 1),
	}
}

// publish makes keepAlive register the node with these facts. It owns them. It leaves out devices
// that the servers would refuse: a node that cannot register sends no heartbeats, and loses its
// tasks.
func (c *contact) publish(facts client.NodeFacts) {
	c.change(func(n *cluster.Node) {
		var err, refused error
		n.Drivers, n.Unlisted = facts.Drivers, facts.Unlisted
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
	c.facts++
	c.mu.Unlock()
	post(c.changed)
}

func (c *contact) newest() *cluster.Node {
	n, _ := c.versioned()
	return n
}

// versioned returns the newest node and the number of its changes.
func (c *contact) versioned() (n *cluster.Node, facts uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node, c.facts
}

// keepAlive registers the node and sends heartbeats until the context ends. It registers the node again
// after a change of the node, and when the servers do not have it.
func (c *contact) keepAlive(ctx context.Context) {
	p := presence.New(heartbeatsInTTL, newRandom())
	first := true
	for ctx.Err() == nil {
		node, facts := c.versioned()
		next := p.Step(time.Now(), facts)
		if next.Request == presence.Nothing {
			pause(ctx, time.Until(next.At), c.changed)
			continue
		}
		sent := bootclock.Now()
		ttl, err := c.send(ctx, next, node)
		p.Answer(time.Now(), ttl, err)
		if err != nil {
			c.failures.failed(ctx, next.Request.String(), err)
			if errors.Is(err, presence.ErrNotRegistered) && !errors.Is(err, errOlderVersion) {
				c.forget(ctx, facts)
			}
			continue
		}
		c.answered(guard.Contact{Sent: sent, TTL: ttl})
		// A registration counts as a heartbeat.
		logged := c.failures.succeeded(presence.Heartbeat.String())
		if next.Request == presence.Register {
			logged = c.failures.succeeded(presence.Register.String()) || logged
			post(c.back)
		}
		if first || logged {
			c.logger.Info("the node is registered", "node", node.ID, "ttl", ttl)
		}
		if first {
			close(c.registered)
			first = false
		}
	}
}

// factsTimeout is how long a node that the servers do not have waits for the facts of the core before it
// registers.
const factsTimeout = time.Second

// forget makes the core publish all allocations that it runs as unlisted, and waits for that, so that the
// registration contains them: a drain could otherwise be complete before the client has read what the
// servers have. facts is the version of the node before. The client then reads all allocations.
func (c *contact) forget(ctx context.Context, facts uint64) {
	c.forgotten()
	c.mu.Lock()
	c.renew = true
	if c.endRequest != nil {
		c.endRequest()
	}
	c.mu.Unlock()
	ctx, end := context.WithTimeout(ctx, factsTimeout)
	defer end()
	for ctx.Err() == nil {
		if _, present := c.versioned(); present != facts {
			return
		}
		pause(ctx, factsTimeout, c.changed)
	}
}

// beginRequest returns the context of a request for changes, and whether it must request all allocations.
func (c *contact) beginRequest(ctx context.Context) (request context.Context, end context.CancelFunc, all bool) {
	request, end = context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.renew, c.endRequest = c.renew, false, end
	return request, end, all
}

// send sends a registration or a heartbeat.
func (c *contact) send(ctx context.Context, next presence.Next, node *cluster.Node) (ttl time.Duration, err error) {
	ctx, end := context.WithTimeout(ctx, next.Timeout)
	defer end()
	if next.Request == presence.Register {
		return c.servers.Register(ctx, node)
	}
	return c.servers.Heartbeat(ctx)
}

// pause waits for a time, or until wake has a value.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}

// post puts a value into a channel of capacity 1, unless it has one.
func post(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// listen passes changes of allocations to receive, after the first registration and until the
// context ends. After a failure it waits, or until the node has registered again.
func (c *contact) listen(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-c.registered:
	}
	var since api.Since
	var backoff presence.Backoff
	random := newRandom()
	for ctx.Err() == nil {
		if c.foreign() {
			// The node may join the other cluster later, and then needs all its allocations.
			pause(ctx, foreignInterval, nil)
			since = api.Since{}
		}
		request, end, all := c.beginRequest(ctx)
		if all {
			since = api.Since{}
		}
		w, err := c.servers.Changes(request, since)
		ended := request.Err() != nil && ctx.Err() == nil
		end()
		if err == nil && w.ClusterID == "" {
			err = errors.New("the server does not name its cluster")
		}
		if ended {
			continue
		}
		if err != nil {
			c.failures.failed(ctx, changesRequest, err)
			pause(ctx, backoff.Next(maxChangesRetry, random), c.back)
			continue
		}
		backoff.Reset()
		c.failures.succeeded(changesRequest)
		since = api.Since{ClusterID: w.ClusterID, Index: w.Index, History: w.History}
		c.receive(w)
	}
}

// awaitRegistered returns nil after the first registration of this client.
func (c *contact) awaitRegistered(ctx context.Context) error {
	select {
	case <-c.registered:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("the client has not registered yet"), context.Cause(ctx))
	}
}

// report sends reports once. It returns whether the servers have them. A client that the servers have not
// accepted reports nothing: the allocations may be those of another client.
func (c *contact) report(ctx context.Context, reports []cluster.AllocReport) bool {
	attempt, end := context.WithTimeout(ctx, reportTimeout)
	defer end()
	if c.awaitRegistered(attempt) != nil {
		return false
	}
	err := c.servers.Report(attempt, reports)
	if err != nil {
		c.failures.failed(ctx, reportRequest, err)
		return false
	}
	c.failures.succeeded(reportRequest)
	return true
}

// newRandom returns random numbers for one goroutine.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
