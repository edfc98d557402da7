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

// writer makes the API's writes, on the leader. The effects of a request depend on the state, so each
// method waits until the state contains the entries of earlier leaders.
type writer struct {
	server     *server.Server
	heartbeats *heartbeats
}

var _ httpapi.Writer = writer{}

// write makes one change when the state contains the entries of earlier leaders.
func write[Result any](ctx context.Context, w writer, change func() (Result, error)) (Result, error) {
	if err := w.server.CaughtUp(ctx); err != nil {
		return *new(Result), apiErrorOf(err)
	}
	result, err := change()
	return result, apiErrorOf(err)
}

// UpdateDrain starts, updates or ends the drain of a node.
func (w writer) UpdateDrain(ctx context.Context, u cluster.DrainUpdate) (cluster.DrainWritten, error) {
	return write(ctx, w, func() (cluster.DrainWritten, error) { return w.server.UpdateDrain(ctx, u) })
}

// UpdateEligibility sets whether a scheduler may use a node.
func (w writer) UpdateEligibility(ctx context.Context, id cluster.NodeID, e cluster.Eligibility) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return w.server.UpdateEligibility(ctx, id, e) })
}

// PurgeNode deletes a node.
func (w writer) PurgeNode(ctx context.Context, id cluster.NodeID) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return w.server.DeregisterNode(ctx, id) })
}

// EvaluateNode creates evaluations of the jobs of a node.
func (w writer) EvaluateNode(ctx context.Context, id cluster.NodeID) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return w.server.EvaluateNode(ctx, id) })
}

// RegisterJob registers a job or its next version.
func (w writer) RegisterJob(ctx context.Context, j *cluster.Job, at *uint64) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return w.server.RegisterJob(ctx, j, at) })
}

// EvaluateJob creates an evaluation of a job.
func (w writer) EvaluateJob(ctx context.Context, key cluster.JobKey) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return w.server.EvaluateJob(ctx, key) })
}

// StopJob stops a job, or deletes it.
func (w writer) StopJob(ctx context.Context, key cluster.JobKey, purge bool) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return w.server.StopJob(ctx, key, purge) })
}

// StopAlloc stops an allocation, which is replaced.
func (w writer) StopAlloc(ctx context.Context, id cluster.AllocID) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return server.StopAlloc(ctx, w.server, id) })
}

// Collect deletes all ended work that nothing needs.
func (w writer) Collect(ctx context.Context) (cluster.Collected, error) {
	return write(ctx, w, func() (cluster.Collected, error) { return server.NewCollection(w.server).Now(ctx) })
}

// ReportAllocs writes reports of clients.
func (w writer) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return w.server.ReportAllocs(ctx, reports) })
}

// RegisterNode registers a node and starts its heartbeat timer. It refuses a known node with another
// secret.
func (w writer) RegisterNode(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error) {
	_, err = write(ctx, w, func() (cluster.Written, error) {
		known := w.server.Store().Snapshot().Node(n.ID)
		if known != nil && subtle.ConstantTimeCompare([]byte(known.SecretID), []byte(n.SecretID)) == 0 {
			return cluster.Written{}, httpapi.ErrForbidden
		}
		return w.server.RegisterNode(ctx, n)
	})
	if err != nil {
		return 0, err
	}
	return w.heartbeats.record(ctx, n.ID)
}

// Heartbeat records a heartbeat of a node. It writes only if the node is not ready, to make it ready.
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
	return w.heartbeats.record(ctx, id)
}

// RegisterVolume registers a volume, or changes a registered one.
func (w writer) RegisterVolume(ctx context.Context, v *cluster.Volume) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return server.NewVolumes(w.server).Register(ctx, v) })
}

// DeregisterVolume deletes a volume.
func (w writer) DeregisterVolume(ctx context.Context, k cluster.VolumeKey, force bool) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return server.NewVolumes(w.server).Deregister(ctx, k, force) })
}

// DetachVolume takes a volume off a node.
func (w writer) DetachVolume(ctx context.Context, k cluster.VolumeKey, n cluster.NodeID, force bool) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) { return server.NewVolumes(w.server).Detach(ctx, k, n, force) })
}

// UpdateClaims applies the changes of claims that hold.
func (w writer) UpdateClaims(ctx context.Context, changes []cluster.ClaimChange) (cluster.Written, error) {
	return write(ctx, w, func() (cluster.Written, error) {
		_, done, err := server.NewVolumes(w.server).Update(ctx, changes)
		return done, err
	})
}
