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

// standing is the state of a volume on all nodes. Its keys are the ids of nodes.
type standing map[string]onNode

// onNode is the state of a volume on one node.
type onNode struct {
	// attached means that a controller has published the volume to the node.
	attached bool
	// staged are the staging paths.
	staged []string
	// published are the targets.
	published []target
}

// target is a path where a node has published a volume.
type target struct{ path, staging string }

// outOfOrder returns why a call is out of order, or an empty string. The repetition of a successful
// call is in order.
func (s standing) outOfOrder(c call) string {
	node := s[c.Node]
	switch c.Name {
	case nodeStage:
		if !node.attached {
			return fmt.Sprintf("the volume is not published to the node %s by a controller", c.Node)
		}
	case nodePublish:
		switch {
		case !node.attached:
			return fmt.Sprintf("the volume is not published to the node %s by a controller", c.Node)
		case !slices.Contains(node.staged, c.Staging):
			return fmt.Sprintf("the volume is not staged at %s", c.Staging)
		}
	case nodeUnstage:
		for _, t := range node.published {
			if t.staging == c.Staging {
				return fmt.Sprintf("the volume is still published at %s", t.path)
			}
		}
	case controllerUnpublish:
		if c.Node != "" {
			return node.mounted(c.Node)
		}
		for _, id := range slices.Sorted(maps.Keys(s)) {
			if why := s[id].mounted(id); why != "" {
				return why
			}
		}
	case deleteVolume:
		for _, id := range slices.Sorted(maps.Keys(s)) {
			if why := s[id].mounted(id); why != "" {
				return why
			}
			if s[id].attached {
				return fmt.Sprintf("the volume is still published to the node %s by a controller", id)
			}
		}
	}
	return ""
}

// mounted returns a path where the volume is still mounted on the node, or an empty string.
func (n onNode) mounted(id string) string {
	switch {
	case len(n.published) > 0:
		return fmt.Sprintf("the volume is still published on the node %s at %s", id, n.published[0].path)
	case len(n.staged) > 0:
		return fmt.Sprintf("the volume is still staged on the node %s at %s", id, n.staged[0])
	}
	return ""
}
