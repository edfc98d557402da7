package remote

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The names of requests in logs. [presence.Request] has two more.
const (
	changesRequest = "changes of allocations"
	reportRequest  = "report of allocations"
)

// Failures logs failed requests of many nodes: each kind of request at most once a minute while it
// fails for a node, and once when it fails for no node. It is safe for concurrent use.
type Failures struct {
	logger hclog.Logger

	mu  sync.Mutex
	all map[string]*failing // by the name of the request; guarded by mu
}

// failing is a kind of request that fails.
type failing struct {
	outage presence.Outage
	nodes  map[cluster.NodeID]bool // the nodes for which it fails
}

// NewFailures returns a log without failures.
func NewFailures(logger hclog.Logger) *Failures {
	return &Failures{logger: logger, all: make(map[string]*failing)}
}

// failed notes a failed request of a node.
func (f *Failures) failed(request string, id cluster.NodeID, err error) {
	f.mu.Lock()
	one := f.all[request]
	if one == nil {
		one = &failing{nodes: make(map[cluster.NodeID]bool)}
		f.all[request] = one
	}
	one.nodes[id] = true
	nodes := len(one.nodes)
	lasting, log := one.outage.Failed(time.Now())
	f.mu.Unlock()
	if log {
		f.logger.Warn("a request to the servers failed", "request", request, "failing_for", lasting.Round(time.Second), "nodes", nodes, "node", id, "error", err)
	}
}

// succeeded notes a request of a node that succeeded.
func (f *Failures) succeeded(request string, id cluster.NodeID) {
	f.mu.Lock()
	one := f.all[request]
	if one == nil || !one.nodes[id] {
		f.mu.Unlock()
		return
	}
	delete(one.nodes, id)
	var lasted time.Duration
	log := false
	if len(one.nodes) == 0 {
		lasted, log = one.outage.Succeeded(time.Now())
	}
	f.mu.Unlock()
	if log {
		f.logger.Info("a request to the servers succeeds again", "request", request, "failed_for", lasted.Round(time.Second))
	}
}
