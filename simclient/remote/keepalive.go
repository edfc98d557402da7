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
	// RegisterNode and Heartbeat return how soon the node has to be heard again. A
	// heartbeat of a node that is not registered fails with an error that wraps
	// [ErrNotRegistered].
	RegisterNode(context.Context, *cluster.Node) (ttl time.Duration, err error)
	Heartbeat(context.Context, cluster.NodeID) (ttl time.Duration, err error)
}

// ErrNotRegistered says that the servers do not know the node. It registers again.
var ErrNotRegistered = errors.New("the node is not registered")

// RetryInterval is the wait before something is said again that was not taken.
const RetryInterval = 500 * time.Millisecond

// registerTimeout is how long the first attempt may take: servers without a leader
// wait for one.
const registerTimeout = 10 * time.Second

// KeepAlive registers a node and has it heard, until the context ends. It calls
// registered after each registration, unless that is nil. An attempt that takes longer
// than half the time in which the node has to be heard, or RetryInterval if that is
// more, is given up: its context ends.
func KeepAlive(ctx context.Context, s Servers, n *cluster.Node, logger hclog.Logger, registered func()) {
	known, told := false, ""
	patience := registerTimeout
	for ctx.Err() == nil {
		var ttl time.Duration
		var err error
		attempt, end := context.WithTimeout(ctx, patience)
		if known {
			ttl, err = s.Heartbeat(attempt, n.ID)
		} else if ttl, err = s.RegisterNode(attempt, n); err == nil && registered != nil {
			registered()
		}
		end()
		wait := ttl / 2 // so that one may go astray
		switch {
		case err == nil:
			known, patience = true, max(wait, RetryInterval)
		case errors.Is(err, ErrNotRegistered):
			known, wait = false, 0
		default:
			wait = RetryInterval
			if err.Error() != told && ctx.Err() == nil { // a wrong token, say, is told of once
				told = err.Error()
				logger.Warn("a node was not heard", "node", n.ID, "error", err)
			}
		}
		pause(ctx, wait)
	}
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
