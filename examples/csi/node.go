package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// node is the service that mounts volumes on this machine.
type node struct {
	csi.UnimplementedNodeServer
	gate *gate
	id   string
}

// NodeGetCapabilities returns the capabilities of the node.
func (*node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{
		Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}},
	}}}, nil
}

// NodeGetInfo returns the id of the node.
func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.id}, nil
}

// NodeStageVolume mounts the folder of a volume at a staging path.
func (n *node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	id := r.GetVolumeId()
	mode, wrong := modeOf(r.GetVolumeCapability())
	wrong = first(checkVolumeID(id), checkPath("staging path", r.GetStagingTargetPath()), wrong)
	c := call{Name: nodeStage, Volume: id, Node: n.id, Staging: resolve(r.GetStagingTargetPath())}
	return &csi.NodeStageVolumeResponse{}, n.gate.run(ctx, c, wrong, func(s *state) error {
		return s.mount(id, n.gate.store.data(id), mountRecord{Node: n.id, Path: c.Staging, Mode: mode})
	})
}

// NodePublishVolume mounts the staging path of a volume at a target.
func (n *node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	id := r.GetVolumeId()
	mode, wrong := modeOf(r.GetVolumeCapability())
	wrong = first(checkVolumeID(id), checkPath("target path", r.GetTargetPath()), wrong, checkPath("staging path", r.GetStagingTargetPath()))
	c := call{Name: nodePublish, Volume: id, Node: n.id, Staging: resolve(r.GetStagingTargetPath()), Target: resolve(r.GetTargetPath())}
	return &csi.NodePublishVolumeResponse{}, n.gate.run(ctx, c, wrong, func(s *state) error {
		requested := mountRecord{Node: n.id, Path: c.Target, Staging: c.Staging, Mode: mode, ReadOnly: r.GetReadonly() || reads(mode)}
		if err := s.mayPublish(id, requested); err != nil {
			return err
		}
		return s.mount(id, c.Staging, requested)
	})
}

// mayPublish returns an error if a volume is not staged, or if its access mode does not allow the
// mount.
func (s *state) mayPublish(id string, requested mountRecord) error {
	mounts := s.existing(id)
	staged := slices.IndexFunc(mounts, func(m mountRecord) bool { return m.stages(requested.Node, requested.Staging) })
	switch {
	case staged < 0:
		return status.Errorf(codes.FailedPrecondition, "the volume %s is not staged at %s", id, requested.Staging)
	case mounts[staged].Mode != requested.Mode:
		return status.Errorf(codes.FailedPrecondition, "the volume %s is staged with the mode %s, and the request has the mode %s", id, mounts[staged].Mode, requested.Mode)
	case requested.Mode != oneWriter || requested.ReadOnly:
		return nil
	}
	for _, m := range mounts {
		if m.Node != requested.Node && m.Staging != "" && !m.ReadOnly {
			return status.Errorf(codes.FailedPrecondition, "the node %s writes to the volume %s, whose mode %s allows one writer", m.Node, id, m.Mode)
		}
	}
	return nil
}

// mount mounts a folder for a volume, unless it is already mounted. It saves the mount before it
// mounts.
func (s *state) mount(id, from string, requested mountRecord) error {
	v, err := s.volume(id)
	if err != nil {
		return err
	}
	recorded, _ := v.recorded(requested.Node, requested.Path)
	at, mounted := s.table.at(requested.Path)
	switch {
	case mounted && !same(at, s.folder(id)):
		return status.Errorf(codes.FailedPrecondition, "something else is mounted at %s", requested.Path)
	case mounted && recorded != requested:
		return status.Errorf(codes.AlreadyExists, "the volume %s is mounted at %s in another way", id, requested.Path)
	case mounted && requested.ReadOnly && !at.ReadOnly: // the plugin died before it made the mount read only
		return makeReadOnly(requested.Path)
	case mounted:
		return nil
	}
	if err := os.Mkdir(requested.Path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return status.Errorf(codes.FailedPrecondition, "make the folder of the mount: %v", err)
	}
	if info, err := os.Lstat(requested.Path); err != nil || !info.IsDir() {
		return status.Errorf(codes.FailedPrecondition, "%s is no folder", requested.Path)
	}
	if err := s.record(id, requested); err != nil {
		return err
	}
	return bind(from, requested.Path, requested.ReadOnly)
}

// NodeUnpublishVolume unmounts a volume from a target, and removes the target.
func (n *node) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	id := r.GetVolumeId()
	c := call{Name: nodeUnpublish, Volume: id, Node: n.id, Target: resolve(r.GetTargetPath())}
	wrong := first(checkVolumeID(id), checkPath("target path", r.GetTargetPath()))
	return &csi.NodeUnpublishVolumeResponse{}, n.gate.run(ctx, c, wrong, func(s *state) error { return s.unmount(id, n.id, c.Target, true) })
}

// NodeUnstageVolume unmounts a volume from a staging path. The folder stays, because the caller
// created it.
func (n *node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	id := r.GetVolumeId()
	c := call{Name: nodeUnstage, Volume: id, Node: n.id, Staging: resolve(r.GetStagingTargetPath())}
	wrong := first(checkVolumeID(id), checkPath("staging path", r.GetStagingTargetPath()))
	return &csi.NodeUnstageVolumeResponse{}, n.gate.run(ctx, c, wrong, func(s *state) error { return s.unmount(id, n.id, c.Staging, false) })
}

// unmount unmounts all mounts of a volume at a path. It does nothing if neither the mount table nor
// the state contains one.
func (s *state) unmount(id, node, path string, removeFolder bool) error {
	v := s.Volumes[id]
	_, recorded := v.recorded(node, path)
	at, mounted := s.table.at(path)
	for mounted && same(at, s.folder(id)) {
		err := unmount(path)
		if err == nil {
			s.table, err = readMounts()
		}
		if err != nil {
			return err
		}
		recorded = true
		at, mounted = s.table.at(path)
	}
	switch {
	case !recorded:
		return nil
	case mounted:
		return status.Errorf(codes.FailedPrecondition, "something else is mounted at %s", path)
	}
	if removeFolder {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the target: %w", err)
		}
	}
	v.Mounts = v.without(node, path)
	return s.put(id, v)
}
