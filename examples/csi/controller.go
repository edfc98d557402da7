package main

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// controller is the service that creates volumes and publishes them to nodes.
type controller struct {
	csi.UnimplementedControllerServer
	gate *gate
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
	id, least, most := r.GetName(), r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	v := volume{Capacity: cmp.Or(least, most)}
	err := c.gate.run(ctx, call{Name: createVolume, Volume: id}, checkCreate(r), func(s *state) error {
		old, found := s.Volumes[id]
		switch {
		case !found:
			return s.create(id, v)
		case old.Capacity < least || most > 0 && old.Capacity > most:
			return status.Errorf(codes.AlreadyExists, "the volume %s exists, and has a capacity of %d bytes", id, old.Capacity)
		}
		v = old
		return nil
	})
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: v.Capacity}}, err
}

func checkCreate(r *csi.CreateVolumeRequest) error {
	least, most := r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes()
	switch {
	case least < 0 || most < 0 || most > 0 && most < least:
		return status.Errorf(codes.OutOfRange, "no capacity is at least %d and at most %d bytes", least, most)
	case len(r.GetParameters()) > 0 || len(r.GetMutableParameters()) > 0:
		return invalidArgument("this plugin has no parameters")
	case r.GetVolumeContentSource() != nil:
		return invalidArgument("this plugin does not copy volumes")
	}
	return first(checkVolumeID(r.GetName()), checkCapabilities(r.GetVolumeCapabilities()))
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
	return &csi.DeleteVolumeResponse{}, c.gate.run(ctx, call{Name: deleteVolume, Volume: id}, checkVolumeID(id), func(s *state) error {
		// Also without the strict mode, because tasks would lose their files.
		if points := s.table.showing(s.folder(id)); len(points) > 0 {
			return status.Errorf(codes.FailedPrecondition, "the volume %s is still mounted at %s", id, points[0])
		}
		return s.remove(id)
	})
}

// ValidateVolumeCapabilities states whether a volume has capabilities.
func (c *controller) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	id, unsupported := r.GetVolumeId(), checkCapabilities(r.GetVolumeCapabilities())
	wrong := checkVolumeID(id)
	if len(r.GetVolumeCapabilities()) == 0 {
		wrong = first(wrong, unsupported)
	}
	err := c.gate.run(ctx, call{Name: validateVolume, Volume: id}, wrong, func(s *state) error {
		_, err := s.volume(id)
		return err
	})
	if unsupported != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(unsupported).Message()}, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, err
}

// ControllerPublishVolume records that a node may mount a volume.
func (c *controller) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	id, node := r.GetVolumeId(), r.GetNodeId()
	mode, wrong := modeOf(r.GetVolumeCapability())
	wrong = first(checkVolumeID(id), checkNodeID(node), wrong)
	if wrong == nil && r.GetReadonly() {
		wrong = invalidArgument("this plugin does not publish read only to a node: it does so at a target")
	}
	return &csi.ControllerPublishVolumeResponse{}, c.gate.run(ctx, call{Name: controllerPublish, Volume: id, Node: node}, wrong, func(s *state) error {
		v, err := s.volume(id)
		switch {
		case err != nil:
			return err
		case !slices.Contains(s.Nodes, node):
			return status.Errorf(codes.NotFound, "there is no node %s: no program of this plugin has run with this node id", node)
		}
		for _, other := range slices.Sorted(maps.Keys(v.Published)) {
			switch published := v.Published[other]; {
			case other == node && published == mode:
				return nil
			case other == node:
				return status.Errorf(codes.AlreadyExists, "the volume %s is published to the node %s with the mode %s", id, other, published)
			case single(published) || single(mode):
				return status.Errorf(codes.FailedPrecondition, "the volume %s is published to the node %s with the mode %s, and the request has the mode %s", id, other, published, mode)
			}
		}
		if v.Published == nil {
			v.Published = map[string]accessMode{}
		}
		v.Published[node] = mode
		return s.put(id, v)
	})
}

// ControllerUnpublishVolume unpublishes a volume from a node, or from all nodes if the request
// names none.
func (c *controller) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	id, node := r.GetVolumeId(), r.GetNodeId()
	return &csi.ControllerUnpublishVolumeResponse{}, c.gate.run(ctx, call{Name: controllerUnpublish, Volume: id, Node: node}, checkVolumeID(id), func(s *state) error {
		v, found := s.Volumes[id]
		if !found {
			return nil
		}
		maps.DeleteFunc(v.Published, func(other string, _ accessMode) bool { return node == "" || other == node })
		return s.put(id, v)
	})
}
