package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

// node is the service that mounts volumes on this machine.
type node struct {
	csi.UnimplementedNodeServer
	gate  *gate
	store *store
	id    string
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
	m, wrong := modeOf(r.GetVolumeCapability())
	wrong = first(checkVolumeID(id), checkPath("staging path", r.GetStagingTargetPath()), wrong)
	c := call{Name: nodeStage, Volume: id, Node: n.id, Staging: resolve(r.GetStagingTargetPath())}
	err := n.gate.run(ctx, c, wrong, func() error {
		return n.mount(id, n.store.data(id), mountRecord{Path: c.Staging, Mode: m.name})
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodePublishVolume mounts the staging path of a volume at a target.
func (n *node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	id := r.GetVolumeId()
	m, wrong := modeOf(r.GetVolumeCapability())
	wrong = first(checkVolumeID(id), checkPath("target path", r.GetTargetPath()), wrong, checkPath("staging path", r.GetStagingTargetPath()))
	c := call{Name: nodePublish, Volume: id, Node: n.id, Staging: resolve(r.GetStagingTargetPath()), Target: resolve(r.GetTargetPath())}
	err := n.gate.run(ctx, c, wrong, func() error {
		requested := mountRecord{Path: c.Target, Staging: c.Staging, Mode: m.name, ReadOnly: r.GetReadonly() || m.reads}
		if err := n.mayPublish(id, m, requested); err != nil {
			return err
		}
		return n.mount(id, c.Staging, requested)
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// mayPublish returns an error if a volume is not staged, or if its access mode does not allow the
// mount.
func (n *node) mayPublish(id string, m mode, requested mountRecord) error {
	table, err := readMounts()
	if err != nil {
		return err
	}
	all, err := n.store.onNodes(id, table)
	if err != nil {
		return err
	}
	staged := slices.IndexFunc(all[n.id], func(a mountRecord) bool { return a.Staging == "" && a.Path == requested.Staging })
	switch {
	case staged < 0:
		return status.Errorf(codes.FailedPrecondition, "the volume %s is not staged at %s", id, requested.Staging)
	case all[n.id][staged].Mode != requested.Mode:
		return status.Errorf(codes.FailedPrecondition, "the volume %s is staged with the mode %s, and the mode %s is wanted", id, all[n.id][staged].Mode, requested.Mode)
	case !m.oneWriter || requested.ReadOnly:
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if other != n.id && slices.ContainsFunc(all[other], func(a mountRecord) bool { return a.Staging != "" && !a.ReadOnly }) {
			return status.Errorf(codes.FailedPrecondition, "the node %s writes to the volume %s, whose mode %s allows one writer", other, id, m.name)
		}
	}
	return nil
}

// mount mounts a folder for a volume, unless it is already mounted. It records the mount in the
// store before it mounts.
func (n *node) mount(id, from string, requested mountRecord) error {
	if err := n.store.mustHave(id); err != nil {
		return err
	}
	table, err := readMounts()
	if err != nil {
		return err
	}
	if at, mounted := table.at(requested.Path); mounted {
		if !same(at, table.folder(n.store.data(id))) {
			return status.Errorf(codes.FailedPrecondition, "something else is mounted at %s", requested.Path)
		}
		return n.mountedAlready(id, at, requested)
	}
	if err := os.Mkdir(requested.Path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return status.Errorf(codes.FailedPrecondition, "make the folder of the mount: %v", err)
	}
	if info, err := os.Lstat(requested.Path); err != nil || !info.IsDir() {
		return status.Errorf(codes.FailedPrecondition, "%s is no folder", requested.Path)
	}
	if err := n.store.record(n.id, id, requested); err != nil {
		return err
	}
	return bind(from, requested.Path, requested.ReadOnly)
}

// mountedAlready checks an existing mount. If the plugin died before it made the mount read only,
// it does so now.
func (n *node) mountedAlready(id string, at mounts.Mount, requested mountRecord) error {
	recorded, err := n.store.recorded(n.id, id)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(recorded, func(a mountRecord) bool { return a.Path == requested.Path })
	switch {
	case i < 0 && at.ReadOnly == requested.ReadOnly:
		return n.store.record(n.id, id, requested)
	case i < 0 || recorded[i] != requested:
		return status.Errorf(codes.AlreadyExists, "the volume %s is mounted at %s in another way", id, requested.Path)
	case requested.ReadOnly && !at.ReadOnly:
		return makeReadOnly(requested.Path)
	}
	return nil
}

// NodeUnpublishVolume unmounts a volume from a target, and removes the target.
func (n *node) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	id := r.GetVolumeId()
	c := call{Name: nodeUnpublish, Volume: id, Node: n.id, Target: resolve(r.GetTargetPath())}
	wrong := first(checkVolumeID(id), checkPath("target path", r.GetTargetPath()))
	err := n.gate.run(ctx, c, wrong, func() error { return n.unmount(id, c.Target, true) })
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeUnstageVolume unmounts a volume from a staging path. The folder stays, because the caller
// created it.
func (n *node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	id := r.GetVolumeId()
	c := call{Name: nodeUnstage, Volume: id, Node: n.id, Staging: resolve(r.GetStagingTargetPath())}
	wrong := first(checkVolumeID(id), checkPath("staging path", r.GetStagingTargetPath()))
	err := n.gate.run(ctx, c, wrong, func() error { return n.unmount(id, c.Staging, false) })
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// unmount unmounts all mounts of a volume at a path. It does nothing if neither the mount table nor
// the store contains one.
func (n *node) unmount(id, path string, removeFolder bool) error {
	recorded, err := n.store.recorded(n.id, id)
	if err != nil {
		return err
	}
	noted := slices.ContainsFunc(recorded, func(a mountRecord) bool { return a.Path == path })
	for {
		table, err := readMounts()
		if err != nil {
			return err
		}
		at, mounted := table.at(path)
		switch {
		case mounted && same(at, table.folder(n.store.data(id))):
			if err := unmount(path); err != nil {
				return err
			}
			noted = true
			continue
		case mounted && noted:
			return status.Errorf(codes.FailedPrecondition, "something else is mounted at %s", path)
		case !noted:
			return nil
		}
		break
	}
	if removeFolder {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the target: %w", err)
		}
	}
	return n.store.forget(n.id, id, path)
}
