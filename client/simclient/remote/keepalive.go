package remote

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Servers take registrations and heartbeats.
type Servers interface {
	// RegisterNode and Heartbeat return the TTL: the time within which the node must send the next heartbeat.
	// A heartbeat of a node that is not registered fails with an error that wraps
	// [presence.ErrNotRegistered].
	RegisterNode(context.Context, *cluster.Node) (ttl time.Duration, err error)
	Heartbeat(context.Context, cluster.NodeID) (ttl time.Duration, err error)
}

// heartbeatsInTTL is the number of heartbeats in a TTL: one heartbeat may be lost.
const heartbeatsInTTL = 2

// maxRetry is the longest wait before a failed request for changes is retried.
const maxRetry = 10 * time.Second

// KeepAlive registers a node, again when the servers no longer have it, and sends its heartbeats, until
// the context ends. It calls registered after each registration, unless that is nil. It retries failed
// requests with backoff, see [presence.Presence].
func KeepAlive(ctx context.Context, s Servers, n *cluster.Node, failures *Failures, registered func()) {
	p := presence.New(heartbeatsInTTL, newRandom())
	for ctx.Err() == nil {
		next := p.Step(time.Now(), 0)
		if next.Request == presence.Nothing {
			pause(ctx, time.Until(next.At), nil)
			continue
		}
		ttl, err := send(ctx, s, n, next)
		p.Answer(time.Now(), ttl, err)
		switch {
		case err != nil && ctx.Err() == nil:
			failures.failed(next.Request.String(), n.ID, err)
		case err == nil:
			failures.succeeded(presence.Heartbeat.String(), n.ID) // a registration counts as one
			if next.Request == presence.Register {
				failures.succeeded(next.Request.String(), n.ID)
				if registered != nil {
					registered()
				}
			}
		}
	}
}

// send sends a registration or a heartbeat.
func send(ctx context.Context, s Servers, n *cluster.Node, next presence.Next) (ttl time.Duration, err error) {
	ctx, end := context.WithTimeout(ctx, next.Timeout)
	defer end()
	if next.Request == presence.Register {
		return s.RegisterNode(ctx, n)
	}
	return s.Heartbeat(ctx, n.ID)
}

// newRandom returns random numbers for one goroutine.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

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
