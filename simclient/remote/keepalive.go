package remote

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Servers take registrations and heartbeats.
type Servers interface {
	// RegisterNode and Heartbeat return the TTL: the time within which the node must send the next heartbeat.
	// A heartbeat of a node that is not registered fails with an error that wraps
	// [ErrNotRegistered].
	RegisterNode(context.Context, *cluster.Node) (ttl time.Duration, err error)
	Heartbeat(context.Context, cluster.NodeID) (ttl time.Duration, err error)
}

// ErrNotRegistered says that the servers do not know the node. It registers again.
var ErrNotRegistered = errors.New("the node is not registered")

// RetryInterval is the wait before a failed request is repeated.
const RetryInterval = 500 * time.Millisecond

// registerTimeout bounds the first attempt: servers without a leader wait for one.
const registerTimeout = 10 * time.Second

// KeepAlive registers a node and sends its heartbeats, until the context ends. It calls
// registered after each registration, unless that is nil. The context of an attempt ends
// after half the TTL of the node, or after RetryInterval if that is longer.
func KeepAlive(ctx context.Context, s Servers, n *cluster.Node, logger hclog.Logger, registered func()) {
	known, logged := false, ""
	timeout := registerTimeout
	for ctx.Err() == nil {
		var ttl time.Duration
		var err error
		attempt, end := context.WithTimeout(ctx, timeout)
		if known {
			ttl, err = s.Heartbeat(attempt, n.ID)
		} else if ttl, err = s.RegisterNode(attempt, n); err == nil && registered != nil {
			registered()
		}
		end()
		wait := ttl / 2 // one heartbeat may be lost
		switch {
		case err == nil:
			known, timeout = true, max(wait, RetryInterval)
		case errors.Is(err, ErrNotRegistered):
			known, wait = false, 0
		default:
			wait = RetryInterval
			if err.Error() != logged && ctx.Err() == nil { // log each error once
				logged = err.Error()
				logger.Warn("a heartbeat or a registration failed", "node", n.ID, "error", err)
			}
		}
		pause(ctx, wait)
	}
}

// pause waits, at most until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
