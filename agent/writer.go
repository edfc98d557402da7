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

// writer changes the state for the API, on the leader. What a request calls for is
// decided from the state, so each waits until that shows what earlier leaders
// wrote.
type writer struct {
	server     *server.Server
	heartbeats *heartbeats
}

var _ httpapi.Writer = writer{}

// write makes one change.
func (w writer) write(ctx context.Context, change func() (server.Written, error)) (httpapi.Written, error) {
	if err := w.server.CaughtUp(ctx); err != nil {
		return httpapi.Written{}, apiErrorOf(err)
	}
	written, err := change()
	return httpapi.Written(written), apiErrorOf(err)
}

// UpdateDrain starts, updates or ends the drain of a node.
func (w writer) UpdateDrain(ctx context.Context, r httpapi.DrainRequest) (httpapi.DrainWritten, error) {
	var updated server.DrainWritten
	written, err := w.write(ctx, func() (_ server.Written, err error) {
		updated, err = w.server.UpdateDrain(ctx, statestore.DrainUpdate{
			Node: r.Node, Spec: r.Spec, MarkEligible: r.MarkEligible, Key: r.Key, Meta: r.Meta, UpdatedBy: r.UpdatedBy,
		})
		return updated.Written, err
	})
	return httpapi.DrainWritten{
		Written: written, Drain: updated.Drain, Repeated: updated.Repeated, Withdrawn: updated.Withdrawn, Stopping: updated.Stopping,
	}, err
}

// UpdateEligibility says whether a scheduler may use a node.
func (w writer) UpdateEligibility(ctx context.Context, id cluster.NodeID, e cluster.Eligibility) (httpapi.Written, error) {
	return w.write(ctx, func() (server.Written, error) { return w.server.UpdateEligibility(ctx, id, e) })
}

// PurgeNode deletes a node.
func (w writer) PurgeNode(ctx context.Context, id cluster.NodeID) (httpapi.Written, error) {
	return w.write(ctx, func() (server.Written, error) { return w.server.DeregisterNode(ctx, id) })
}

// EvaluateNode has the jobs of a node looked at.
func (w writer) EvaluateNode(ctx context.Context, id cluster.NodeID) (httpapi.Written, error) {
	return w.write(ctx, func() (server.Written, error) { return w.server.EvaluateNode(ctx, id) })
}

// RegisterJob registers a job or its next version.
func (w writer) RegisterJob(ctx context.Context, j *cluster.Job) (httpapi.Written, error) {
	return w.write(ctx, func() (server.Written, error) { return w.server.RegisterJob(ctx, j) })
}

// EvaluateJob has a job looked at.
func (w writer) EvaluateJob(ctx context.Context, key cluster.JobKey) (httpapi.Written, error) {
	return w.write(ctx, func() (server.Written, error) { return w.server.EvaluateJob(ctx, key) })
}

// StopJob stops a job, or deletes it.
func (w writer) StopJob(ctx context.Context, key cluster.JobKey, purge bool) (httpapi.Written, error) {
	return w.write(ctx, func() (server.Written, error) { return w.server.StopJob(ctx, key, purge) })
}

// ReportAllocs takes what clients say of their allocations.
func (w writer) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) (httpapi.Written, error) {
	return w.write(ctx, func() (server.Written, error) { return w.server.ReportAllocs(ctx, reports) })
}

// RegisterNode registers a node, which has to be heard again from then on. A node
// that is known by another secret is somebody else's.
func (w writer) RegisterNode(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error) {
	_, err = w.write(ctx, func() (server.Written, error) {
		known := w.server.Store().Snapshot().Node(n.ID)
		if known != nil && subtle.ConstantTimeCompare([]byte(known.SecretID), []byte(n.SecretID)) == 0 {
			return server.Written{}, httpapi.ErrForbidden
		}
		return w.server.RegisterNode(ctx, n)
	})
	if err != nil {
		return 0, err
	}
	return w.heartbeats.heard(ctx, n.ID)
}

// Heartbeat says that a node was heard. One that is not ready becomes so, and that
// alone writes anything.
func (w writer) Heartbeat(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	if err := w.server.CaughtUp(ctx); err != nil {
		return 0, apiErrorOf(err)
	}
	switch n := w.server.Store().Snapshot().Node(id); {
	case n == nil:
		return 0, apiErrorOf(statestore.ErrNodeNotFound)
	case n.Status != cluster.NodeReady:
		if _, err := w.server.UpdateNodeStatus(ctx, id, cluster.NodeReady); err != nil {
			return 0, apiErrorOf(err)
		}
	}
	return w.heartbeats.heard(ctx, id)
}
