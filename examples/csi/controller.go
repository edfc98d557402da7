package main

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// controller is the service that creates volumes and publishes them to nodes.
type controller struct {
	csi.UnimplementedControllerServer
	gate  *gate
	store *store
}

// ControllerGetCapabilities returns the capabilities of the controller.
func (*controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, can := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: can}},
		})
	}
	return answer, nil
}

// CreateVolume creates a folder. The name of the volume is its id.
func (c *controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	v := volume{ID: r.GetName()}
	least, most := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	v.Capacity = least
	if least == 0 {
		v.Capacity = most
	}
	err := c.gate.run(ctx, call{Name: createVolume, Volume: v.ID}, checkCreate(r), func() error {
		old, found, err := c.store.volume(v.ID)
		switch {
		case err != nil:
			return err
		case !found:
			return c.store.create(v)
		case old.Capacity < least || most > 0 && old.Capacity > most:
			return status.Errorf(codes.AlreadyExists, "the volume %s exists, and has a capacity of %d bytes", v.ID, old.Capacity)
		}
		v = old
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: v.ID, CapacityBytes: v.Capacity}}, nil
}

func checkCreate(r *csi.CreateVolumeRequest) error {
	least, most := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	switch {
	case least < 0 || most < 0 || most > 0 && most < least:
		return status.Errorf(codes.OutOfRange, "no capacity is at least %d and at most %d bytes", least, most)
	case len(r.GetParameters()) > 0 || len(r.GetMutableParameters()) > 0:
		return invalidArgument("this plugin knows no parameters")
	case r.GetVolumeContentSource() != nil:
		return invalidArgument("this plugin does not copy volumes")
	}
	return first(checkID("name", r.GetName(), maxID), checkCapabilities(r.GetVolumeCapabilities()))
}

func checkCapabilities(all []*csi.VolumeCapability) error {
	if len(all) == 0 {
		return invalidArgument("the request has no volume capabilities")
	}
	for _, one := range all {
		if _, err := modeOf(one); err != nil {
			return err
		}
	}
	return nil
}

// DeleteVolume removes the folder of a volume, unless it is in use.
func (c *controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := r.GetVolumeId()
	err := c.gate.run(ctx, call{Name: deleteVolume, Volume: id}, checkVolumeID(id), func() error {
		table, err := readMounts()
		if err != nil {
			return err
		}
		// Also without the strict mode, because tasks would lose their files.
		if points := table.showing(table.folder(c.store.data(id))); len(points) > 0 {
			return status.Errorf(codes.FailedPrecondition, "the volume %s is still mounted at %s", id, points[0])
		}
		return c.store.remove(id)
	})
	if err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ValidateVolumeCapabilities states whether a volume has capabilities.
func (c *controller) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	wrong := checkVolumeID(r.GetVolumeId())
	if len(r.GetVolumeCapabilities()) == 0 {
		wrong = first(wrong, invalidArgument("the request has no volume capabilities"))
	}
	err := c.gate.run(ctx, call{Name: validateVolume, Volume: r.GetVolumeId()}, wrong, func() error { return c.store.mustHave(r.GetVolumeId()) })
	if err != nil {
		return nil, err
	}
	if err := checkCapabilities(r.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

// ControllerPublishVolume records that a node may mount a volume.
func (c *controller) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	id, node := r.GetVolumeId(), r.GetNodeId()
	m, wrong := modeOf(r.GetVolumeCapability())
	wrong = first(checkVolumeID(id), checkNodeID(node), wrong)
	if wrong == nil && r.GetReadonly() {
		wrong = invalidArgument("this plugin does not publish read only to a node: it does so at a target")
	}
	err := c.gate.run(ctx, call{Name: controllerPublish, Volume: id, Node: node}, wrong, func() error {
		if err := c.store.mustHave(id); err != nil {
			return err
		}
		known, err := c.store.hasNode(node)
		switch {
		case err != nil:
			return err
		case !known:
			return status.Errorf(codes.NotFound, "there is no node %s: no program of this plugin has run with this node id", node)
		}
		return c.publish(id, publication{Node: node, Mode: m.name})
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// publish publishes an existing volume, unless the access modes do not allow it.
func (c *controller) publish(id string, requested publication) error {
	all, err := c.store.publications(id)
	if err != nil {
		return err
	}
	for _, p := range all {
		switch {
		case p == requested:
			return nil
		case p.Node == requested.Node:
			return status.Errorf(codes.AlreadyExists, "the volume %s is published to the node %s with the mode %s", id, p.Node, p.Mode)
		case singleMode(p.Mode) || singleMode(requested.Mode):
			return status.Errorf(codes.FailedPrecondition, "the volume %s is published to the node %s with the mode %s, and the mode %s is wanted", id, p.Node, p.Mode, requested.Mode)
		}
	}
	return c.store.publish(id, requested)
}

// ControllerUnpublishVolume unpublishes a volume from a node, or from all nodes if the request
// names none.
func (c *controller) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	id, node := r.GetVolumeId(), r.GetNodeId()
	err := c.gate.run(ctx, call{Name: controllerUnpublish, Volume: id, Node: node}, checkVolumeID(id), func() error {
		all, err := c.store.publications(id)
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.Node == node || node == "" {
				if err := c.store.unpublish(id, p.Node); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
