package wire

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// StoragePlugin is what a node reports of a storage plugin that runs on it. Ours: the compatible fields
// of a node are made of it.
type StoragePlugin struct {
	ID string
	// Type is node, controller or monolith.
	Type string
	// AllocID is the allocation that runs it.
	AllocID           string
	Healthy           bool
	HealthDescription string
	Provider          string
	Version           string
	// NodeID is what the plugin calls the node.
	NodeID           string            `json:",omitempty"`
	MaxVolumes       int64             `json:",omitempty"`
	Topology         map[string]string `json:",omitempty"`
	NeedsController  bool              `json:",omitempty"`
	Stages           bool              `json:",omitempty"`
	Attaches         bool              `json:",omitempty"`
	ReadOnlyAttaches bool              `json:",omitempty"`
	UpdateTime       Time
}

// CSIInfo is one service of a storage plugin on a node.
type CSIInfo struct {
	PluginID                 string
	AllocID                  string
	Healthy                  bool
	HealthDescription        string
	UpdateTime               time.Time
	RequiresControllerPlugin bool
	RequiresTopologies       bool
	ControllerInfo           *CSIControllerInfo `json:",omitempty"`
	NodeInfo                 *CSINodeInfo       `json:",omitempty"`
}

// CSINodeInfo describes a plugin that mounts volumes.
type CSINodeInfo struct {
	// ID is what the plugin calls the node.
	ID string
	// MaxVolumes bounds its volumes on the node; zero is no bound.
	MaxVolumes              int64
	AccessibleTopology      *Topology
	RequiresNodeStageVolume bool
}

// CSIControllerInfo describes a controller.
type CSIControllerInfo struct {
	SupportsAttachDetach   bool
	SupportsReadOnlyAttach bool
}

// PluginListStub is a storage plugin in a list.
type PluginListStub struct {
	ID                  string
	Provider            string
	ControllerRequired  bool
	ControllersHealthy  int
	ControllersExpected int
	NodesHealthy        int
	NodesExpected       int
	CreateIndex         uint64
	ModifyIndex         uint64
}

// Plugin is a storage plugin in full.
type Plugin struct {
	PluginListStub
	Version string
	// Controllers and Nodes are its services by node.
	Controllers map[string]*CSIInfo
	Nodes       map[string]*CSIInfo
	Allocations []*AllocationListStub
}

// NewPluginListStub returns the plugin as a list has it. Its indexes are those of the nodes that
// report it.
func NewPluginListStub(p *volumes.Plugin) *PluginListStub {
	w := &PluginListStub{ID: string(p.ID), Provider: p.Provider, ControllerRequired: p.NeedsController}
	w.NodesExpected, w.NodesHealthy, w.ControllersExpected, w.ControllersHealthy = p.Count()
	for n, i := range p.Instances {
		if n == 0 || i.Node.CreateIndex < w.CreateIndex {
			w.CreateIndex = i.Node.CreateIndex
		}
		w.ModifyIndex = max(w.ModifyIndex, i.Node.ModifyIndex)
	}
	return w
}

// NewPlugin returns the plugin without its allocations.
func NewPlugin(p *volumes.Plugin) *Plugin {
	w := &Plugin{
		PluginListStub: *NewPluginListStub(p), Version: p.Version,
		Controllers: map[string]*CSIInfo{}, Nodes: map[string]*CSIInfo{}, Allocations: []*AllocationListStub{},
	}
	for _, i := range p.Instances {
		if i.Type.Node() {
			w.Nodes[string(i.Node.ID)] = newCSINode(i.StoragePlugin)
		}
		if i.Type.Controller() {
			w.Controllers[string(i.Node.ID)] = newCSIController(i.StoragePlugin)
		}
	}
	return w
}

func newCSIInfo(p *cluster.StoragePlugin) *CSIInfo {
	return &CSIInfo{
		PluginID: string(p.ID), AllocID: string(p.Alloc), Healthy: p.Healthy, HealthDescription: p.HealthDescription, UpdateTime: p.UpdateTime,
		RequiresControllerPlugin: p.NeedsController, RequiresTopologies: len(p.Topology.Segments) > 0,
	}
}

func newCSINode(p *cluster.StoragePlugin) *CSIInfo {
	w := newCSIInfo(p)
	w.NodeInfo = &CSINodeInfo{ID: p.NodeID, MaxVolumes: p.MaxVolumes, RequiresNodeStageVolume: p.Stages}
	if len(p.Topology.Segments) > 0 {
		w.NodeInfo.AccessibleTopology = &Topology{Segments: p.Topology.Segments}
	}
	return w
}

func newCSIController(p *cluster.StoragePlugin) *CSIInfo {
	w := newCSIInfo(p)
	w.ControllerInfo = &CSIControllerInfo{SupportsAttachDetach: p.Attaches, SupportsReadOnlyAttach: p.ReadOnlyAttaches}
	return w
}

// newCSIPlugins are the services of a node's storage plugins, by plugin.
func newCSIPlugins(plugins []*cluster.StoragePlugin) (controllers, nodes map[string]*CSIInfo) {
	controllers, nodes = map[string]*CSIInfo{}, map[string]*CSIInfo{}
	for _, p := range plugins {
		if p.Type.Controller() {
			controllers[string(p.ID)] = newCSIController(p)
		}
		if p.Type.Node() {
			nodes[string(p.ID)] = newCSINode(p)
		}
	}
	return controllers, nodes
}

func newStoragePlugins(plugins []*cluster.StoragePlugin) []*StoragePlugin {
	var list []*StoragePlugin
	for _, p := range plugins {
		list = append(list, &StoragePlugin{
			ID: string(p.ID), Type: string(p.Type), AllocID: string(p.Alloc), Healthy: p.Healthy, HealthDescription: p.HealthDescription,
			Provider: p.Provider, Version: p.Version, NodeID: p.NodeID, MaxVolumes: p.MaxVolumes, Topology: p.Topology.Segments,
			NeedsController: p.NeedsController, Stages: p.Stages, Attaches: p.Attaches, ReadOnlyAttaches: p.ReadOnlyAttaches,
			UpdateTime: NewTime(p.UpdateTime),
		})
	}
	return list
}

func registeredPlugins(plugins []*StoragePlugin) []*cluster.StoragePlugin {
	var list []*cluster.StoragePlugin
	for _, p := range plugins {
		if p == nil {
			list = append(list, nil) // the registration is refused
			continue
		}
		list = append(list, &cluster.StoragePlugin{
			ID: cluster.PluginID(p.ID), Type: cluster.PluginType(p.Type), Alloc: cluster.AllocID(p.AllocID), Healthy: p.Healthy,
			HealthDescription: p.HealthDescription, Provider: p.Provider, Version: p.Version, NodeID: p.NodeID, MaxVolumes: p.MaxVolumes,
			Topology: cluster.Topology{Segments: p.Topology}, NeedsController: p.NeedsController, Stages: p.Stages,
			Attaches: p.Attaches, ReadOnlyAttaches: p.ReadOnlyAttaches, UpdateTime: p.UpdateTime.Time,
		})
	}
	return list
}
