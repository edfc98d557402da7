package main

import (
	"fmt"
	"maps"
	"slices"
)

// The calls of a volume, by the names of the CSI specification.
const (
	createVolume        = "CreateVolume"
	deleteVolume        = "DeleteVolume"
	validateVolume      = "ValidateVolumeCapabilities"
	controllerPublish   = "ControllerPublishVolume"
	controllerUnpublish = "ControllerUnpublishVolume"
	nodeStage           = "NodeStageVolume"
	nodeUnstage         = "NodeUnstageVolume"
	nodePublish         = "NodePublishVolume"
	nodeUnpublish       = "NodeUnpublishVolume"
)

// call contains the fields of a call that matter for the order.
type call struct {
	// Name is one of the constants above.
	Name   string `json:"call"`
	Volume string `json:"volume"`
	// Node is empty in CreateVolume, DeleteVolume and ValidateVolumeCapabilities, and in a
	// ControllerUnpublishVolume of all nodes.
	Node string `json:"node,omitempty"`
	// Staging is empty in calls that have no staging path, Target in those that have no target path.
	Staging string `json:"staging,omitempty"`
	Target  string `json:"target,omitempty"`
}

// outOfOrder returns why a call is out of order, or an empty string. Published and mounts are the
// nodes and the existing mounts of the volume. The repetition of a successful call is in order.
func (c call) outOfOrder(published map[string]accessMode, mounts []mountRecord) string {
	_, attached := published[c.Node]
	switch c.Name {
	case nodeStage, nodePublish:
		if !attached {
			return fmt.Sprintf("the volume is not published to the node %s by a controller", c.Node)
		}
		if c.Name == nodePublish && !slices.ContainsFunc(mounts, func(m mountRecord) bool { return m.stages(c.Node, c.Staging) }) {
			return fmt.Sprintf("the volume is not staged at %s", c.Staging)
		}
	case nodeUnstage:
		for _, m := range mounts {
			if m.Node == c.Node && m.Staging == c.Staging {
				return fmt.Sprintf("the volume is still published at %s", m.Path)
			}
		}
	case controllerUnpublish, deleteVolume:
		for _, m := range mounts {
			if c.Node == "" || m.Node == c.Node {
				return fmt.Sprintf("the volume is still mounted on the node %s at %s", m.Node, m.Path)
			}
		}
		if nodes := slices.Sorted(maps.Keys(published)); c.Name == deleteVolume && len(nodes) > 0 {
			return fmt.Sprintf("the volume is still published to the node %s by a controller", nodes[0])
		}
	}
	return ""
}

// stages reports whether a node has staged the volume at a path with this mount.
func (m mountRecord) stages(node, path string) bool {
	return m.Node == node && m.Staging == "" && m.Path == path
}
