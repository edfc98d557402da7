package agent

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// writer makes the API's writes, on the leader.
type writer struct {
	server.Requests
	server     *server.Server
	heartbeats *heartbeats
}

var _ httpapi.Writer = writer{}

// RegisterNode registers a node and starts its heartbeat timer. It refuses a known node with another
// secret.
func (w writer) RegisterNode(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error) {
	if err := w.server.CaughtUp(ctx); err != nil {
		return 0, server.Classify(err)
	}
	known := w.server.Store().Snapshot().Node(n.ID)
	if known != nil && subtle.ConstantTimeCompare([]byte(known.SecretID), []byte(n.SecretID)) == 0 {
		return 0, httpapi.ErrForbidden
	}
	if err := w.heartbeats.during(n.ID, func() error {
		_, err := w.Requests.RegisterNode(ctx, n)
		return err
	}); err != nil {
		return 0, err
	}
	return w.heartbeats.record(ctx, n.ID)
}

// Heartbeat records a heartbeat of a node. It writes only if the node is not ready, to make it ready.
func (w writer) Heartbeat(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	if err := w.server.CaughtUp(ctx); err != nil {
		return 0, server.Classify(err)
	}
	switch n := w.server.Store().Snapshot().Node(id); {
	case n == nil:
		return 0, server.Classify(statestore.ErrNodeNotFound)
	case n.Status != cluster.NodeReady:
		if err := w.heartbeats.during(id, func() error {
			_, err := w.UpdateNodeStatus(ctx, id, cluster.NodeReady)
			return err
		}); err != nil {
			return 0, err
		}
	}
	return w.heartbeats.record(ctx, id)
}
