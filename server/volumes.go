package server

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Volumes changes the volumes of a server's cluster and their claims, and knows which calls of controllers fail.
type Volumes struct{ server *Server }

// NewVolumes returns the volumes of the server.
func NewVolumes(s *Server) Volumes { return Volumes{s} }

// Register registers a volume, or changes a registered one. The error says what is wrong with the
// volume, or wraps [statestore.ErrVolumeInUse].
func (v Volumes) Register(ctx context.Context, volume *cluster.Volume) (cluster.Written, error) {
	if volume == nil {
		return cluster.Written{}, errors.New("registering a volume: volume is missing")
	}
	return ask(ctx, v.server, &shims.VolumeRegister{At: time.Now(), Volume: volume.Copy()})
}

// Deregister deletes a volume, with force also one that has claims. The error is
// [statestore.ErrVolumeNotFound], or wraps [statestore.ErrVolumeInUse].
func (v Volumes) Deregister(ctx context.Context, k cluster.VolumeKey, force bool) (cluster.Written, error) {
	return ask(ctx, v.server, &shims.VolumeDeregister{Volume: k, Force: force})
}

// Detach asks the node to unmount the volume from allocations that have ended. With force its claims
// go on as if the node had, and the allocations that use it there are stopped and replaced. The error is [statestore.ErrClaimNotFound], or wraps
// [statestore.ErrVolumeInUse].
func (v Volumes) Detach(ctx context.Context, k cluster.VolumeKey, n cluster.NodeID, force bool) (cluster.Written, error) {
	return ask(ctx, v.server, &shims.VolumeDetach{At: time.Now(), Volume: k, Node: n, Force: force})
}

// Update applies the changes of claims that hold, and returns the others. Without changes it writes
// nothing, and the index is zero.
func (v Volumes) Update(ctx context.Context, changes []cluster.ClaimChange) ([]cluster.ClaimRefusal, cluster.Written, error) {
	if len(changes) == 0 {
		return nil, cluster.Written{}, nil
	}
	m := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: time.Now(), Changes: changes}}
	response, index, err := shims.Apply(ctx, v.server.requests, m)
	w, err := written(index, nil, err)
	return response.Refused, w, err
}

// FailingCalls returns the due calls of controllers that have failed or have no controller, by volume and
// node, at most two seconds old. It is empty on a server that does not lead. It is not written to.
func (v Volumes) FailingCalls() []volumes.FailedCall {
	if failing := v.server.leader.failing.Load(); failing != nil {
		return *failing
	}
	return nil
}
