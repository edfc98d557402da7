package agent

import (
	"context"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

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
