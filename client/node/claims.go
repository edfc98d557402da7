package node

import (
	"context"
	"errors"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

var _ VolumeServers = (*httpServers)(nil)

// claim reads a claim of the node and its volume. Both are nil if the server has no such claim.
func (s *httpServers) claim(ctx context.Context, k cluster.ClaimKey) (v *cluster.Volume, c *cluster.VolumeClaim, err error) {
	err = s.ask(func(one httpServer) error {
		found, err := one.self.Volume(ctx, k.Volume)
		if found == nil {
			return err
		}
		v = found.Volume
		for _, claim := range found.Claims {
			if claim.Key() == k {
				c = claim
			}
		}
		return err
	})
	if c == nil {
		v = nil
	}
	return v, c, err
}

// ClaimVolume implements [VolumeServers]. The plan that placed the allocation has created the
// claim, and the leader answers with the newest state. So a missing claim will not appear later:
// the start of the task fails, and the servers replace the allocation after its last restart.
func (s *httpServers) ClaimVolume(ctx context.Context, k cluster.ClaimKey) (storage.Claimed, error) {
	v, c, err := s.claim(ctx, k)
	switch {
	case err != nil:
		return storage.Claimed{}, err
	case c == nil:
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the servers no longer have the claim of the allocation")
	case !c.State.OnNode():
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the claim is released: its state is %q", c.State)
	case v == nil:
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the volume was deregistered by force")
	case c.WaitsForController():
		return storage.Claimed{}, errors.New("a controller must attach the volume to the node")
	}
	return storage.Claimed{
		Plugin: v.Plugin, ExternalID: v.ExternalID, Options: v.MountOptions, PublishContext: c.PublishContext,
		Context: v.Context, Secrets: v.Secrets,
	}, nil
}

// ReleaseVolume implements [VolumeServers]. The leader answers. If it does not have the claim, the
// claim is released.
func (s *httpServers) ReleaseVolume(ctx context.Context, k cluster.ClaimKey) error {
	_, c, err := s.claim(ctx, k)
	if err != nil {
		return err
	}
	if c != nil && c.State.OnNode() {
		err := s.ask(func(one httpServer) error {
			_, err := one.self.Release(ctx, []cluster.ClaimKey{k})
			return err
		})
		if err != nil {
			return err
		}
		if _, c, err = s.claim(ctx, k); err != nil {
			return err
		}
	}
	if c != nil {
		return errors.New("a controller must detach the volume from the node")
	}
	return nil
}
