package csi

import (
	"context"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Do makes a call for a volume of the node. staging and target are paths as the plugin sees them.
// The error has a class of package storage. If the plugin does not have the volume, unpublish and
// unstage succeed.
func (p *Plugin) Do(ctx context.Context, c storage.Call, staging, target string) error {
	err := hide(p.do(ctx, c, staging, target), c.Claimed.Secrets, optionsOf(c))
	return hide(err, c.Confidential.Secrets, c.Confidential.Options)
}

func (p *Plugin) do(ctx context.Context, c storage.Call, staging, target string) error {
	var err error
	if !c.Staged {
		staging = ""
	}
	switch c.Verb {
	case storage.Stage:
		_, err = p.node.NodeStageVolume(ctx, &spec.NodeStageVolumeRequest{
			VolumeId: c.ExternalID, PublishContext: c.Claimed.PublishContext, StagingTargetPath: staging,
			VolumeCapability: capabilityOf(c), Secrets: c.Claimed.Secrets, VolumeContext: c.Claimed.Context,
		})
	case storage.Publish:
		_, err = p.node.NodePublishVolume(ctx, &spec.NodePublishVolumeRequest{
			VolumeId: c.ExternalID, PublishContext: c.Claimed.PublishContext, StagingTargetPath: staging, TargetPath: target,
			VolumeCapability: capabilityOf(c), Readonly: c.Request.Usage.ReadOnly, Secrets: c.Claimed.Secrets, VolumeContext: c.Claimed.Context,
		})
		if status.Code(err) == codes.FailedPrecondition && c.Staged {
			return &storage.Error{Class: storage.NotStaged, Err: inWords(c.Verb.String(), err)}
		}
	case storage.Unpublish:
		_, err = p.node.NodeUnpublishVolume(ctx, &spec.NodeUnpublishVolumeRequest{VolumeId: c.ExternalID, TargetPath: target})
	case storage.Unstage:
		_, err = p.node.NodeUnstageVolume(ctx, &spec.NodeUnstageVolumeRequest{VolumeId: c.ExternalID, StagingTargetPath: staging})
	}
	if status.Code(err) == codes.NotFound && (c.Verb == storage.Unpublish || c.Verb == storage.Unstage) {
		return nil
	}
	return classify(c.Verb.String(), err)
}

// capabilityOf converts the usage of a call's volume.
func capabilityOf(c storage.Call) *spec.VolumeCapability {
	return capability(c.Request.Usage.VolumeCapability, optionsOf(c))
}

func optionsOf(c storage.Call) *cluster.MountOptions {
	if c.Request.Options != nil {
		return c.Request.Options
	}
	return c.Claimed.Options
}

func capability(c cluster.VolumeCapability, options *cluster.MountOptions) *spec.VolumeCapability {
	out := &spec.VolumeCapability{AccessMode: &spec.VolumeCapability_AccessMode{Mode: accessMode(c.Access)}}
	if c.Attachment == cluster.AttachBlockDevice {
		out.AccessType = &spec.VolumeCapability_Block{Block: &spec.VolumeCapability_BlockVolume{}}
		return out
	}
	mount := &spec.VolumeCapability_MountVolume{}
	if options != nil {
		mount.FsType, mount.MountFlags = options.FSType, options.Flags
	}
	out.AccessType = &spec.VolumeCapability_Mount{Mount: mount}
	return out
}

func accessMode(m cluster.AccessMode) spec.VolumeCapability_AccessMode_Mode {
	switch m {
	case cluster.SingleNodeReader:
		return spec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
	case cluster.SingleNodeWriter:
		return spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	case cluster.MultiNodeReader:
		return spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case cluster.MultiNodeSingleWriter:
		return spec.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER
	case cluster.MultiNodeMultiWriter:
		return spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	return spec.VolumeCapability_AccessMode_UNKNOWN
}

// Attachment describes a volume and a node for [Plugin.Attach] and [Plugin.Detach].
type Attachment struct {
	// ExternalID and NodeID are the ids of the volume and the node in the storage plugin.
	ExternalID, NodeID string
	Capability         cluster.VolumeCapability
	ReadOnly           bool
	Options            *cluster.MountOptions
	Context            map[string]string
	Secrets            map[string]string
}

// Attach requests a controller to publish a volume to a node, and returns the context for the calls of the
// node. The error has a class of package storage.
func (p *Plugin) Attach(ctx context.Context, a Attachment) (map[string]string, error) {
	answer, err := p.controller.ControllerPublishVolume(ctx, &spec.ControllerPublishVolumeRequest{
		VolumeId: a.ExternalID, NodeId: a.NodeID, VolumeCapability: capability(a.Capability, a.Options),
		Readonly: a.ReadOnly, Secrets: a.Secrets, VolumeContext: a.Context,
	})
	return answer.GetPublishContext(), hide(classify("ControllerPublishVolume", err), a.Secrets, a.Options)
}

// Detach requests a controller to unpublish a volume from a node. If the plugin does not have the
// volume, Detach succeeds.
func (p *Plugin) Detach(ctx context.Context, a Attachment) error {
	_, err := p.controller.ControllerUnpublishVolume(ctx, &spec.ControllerUnpublishVolumeRequest{VolumeId: a.ExternalID, NodeId: a.NodeID, Secrets: a.Secrets})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return hide(classify("ControllerUnpublishVolume", err), a.Secrets, a.Options)
}
