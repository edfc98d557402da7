package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// PluginID names a storage plugin: the volumes with the id are served by every allocation that runs a
// plugin with the id.
type PluginID string

// PluginType lists the services that a storage plugin has.
type PluginType string

// The values of [PluginType].
const (
	// PluginNode mounts volumes on its node.
	PluginNode PluginType = "node"
	// PluginController attaches volumes to any node.
	PluginController PluginType = "controller"
	// PluginMonolith is both.
	PluginMonolith PluginType = "monolith"
)

// Valid reports whether t is one of the three values.
func (t PluginType) Valid() bool {
	return t == PluginNode || t == PluginController || t == PluginMonolith
}

// Node reports whether a plugin of the type mounts volumes on its node.
func (t PluginType) Node() bool { return t == PluginNode || t == PluginMonolith }

// Controller reports whether a plugin of the type attaches volumes to nodes.
func (t PluginType) Controller() bool { return t == PluginController || t == PluginMonolith }

// CSIPlugin makes a task a storage plugin.
type CSIPlugin struct {
	ID   PluginID
	Type PluginType
	// MountDir is where a task with files of its own finds the folder of its socket. Empty is
	// [DefaultPluginMountDir].
	MountDir string `codec:",omitempty"`
	// StagePublishBaseDir is where such a task sees the folder of staged and published volumes. Empty is
	// [DefaultPluginVolumesDir].
	StagePublishBaseDir string `codec:",omitempty"`
	// HealthTimeout is how long the plugin may fail its probes before the client restarts the task.
	// Zero is [DefaultPluginHealthTimeout].
	HealthTimeout time.Duration `codec:",omitempty"`
}

// Defaults of [CSIPlugin].
const (
	DefaultPluginMountDir      = "/csi"
	DefaultPluginVolumesDir    = "/local/csi"
	DefaultPluginHealthTimeout = 30 * time.Second
)

func (p *CSIPlugin) copy() *CSIPlugin {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func (p *CSIPlugin) validate() error {
	if p == nil {
		return nil
	}
	var errs []error
	if err := CheckID(p.ID); err != nil {
		errs = append(errs, fmt.Errorf("CSIPlugin: invalid ID: %w", err))
	}
	if !p.Type.Valid() {
		errs = append(errs, fmt.Errorf("CSIPlugin: invalid type: %q", p.Type))
	}
	if len(p.MountDir) > MaxMountPathBytes || len(p.StagePublishBaseDir) > MaxMountPathBytes {
		errs = append(errs, fmt.Errorf("CSIPlugin: paths have at most %d bytes", MaxMountPathBytes))
	}
	if p.HealthTimeout < 0 {
		errs = append(errs, fmt.Errorf("CSIPlugin: HealthTimeout is %s and must be >= 0", p.HealthTimeout))
	}
	return errors.Join(errs...)
}

// StoragePlugin is what a node last reported of a storage plugin that runs on it.
type StoragePlugin struct {
	ID   PluginID
	Type PluginType
	// Alloc is the allocation that runs it.
	Alloc AllocID
	// Healthy plugins answer probes. HealthDescription is the reason of Healthy, in words.
	Healthy           bool
	HealthDescription string
	// Provider and Version are the texts that the plugin reports.
	Provider string `codec:",omitempty"`
	Version  string `codec:",omitempty"`
	// NodeID is what the plugin calls the node, or empty for a controller.
	NodeID string `codec:",omitempty"`
	// MaxVolumes bounds the volumes of the plugin on the node; zero is no bound.
	MaxVolumes int64 `codec:",omitempty"`
	// Topology is the location of the node that the plugin reports.
	Topology Topology `codec:",omitempty"`
	// NeedsController means that the plugin has controllers, without which no volume comes to a node.
	NeedsController bool `codec:",omitempty"`
	// Stages means that a volume is staged once on the node before it is published to allocations.
	Stages bool `codec:",omitempty"`
	// Attaches means that a controller attaches and detaches volumes, ReadOnlyAttaches that it can attach
	// them read only.
	Attaches         bool `codec:",omitempty"`
	ReadOnlyAttaches bool `codec:",omitempty"`
	// UpdateTime is when the client noticed the last change.
	UpdateTime time.Time
}

// Bounds on the storage plugins of a node.
const (
	MaxStoragePlugins = 64
	// MaxStoragePluginBytes bounds all texts of one plugin.
	MaxStoragePluginBytes = 4 << 10
)

// Copy returns a copy that shares nothing with p.
func (p *StoragePlugin) Copy() *StoragePlugin {
	if p == nil {
		return nil
	}
	c := *p
	c.Topology.Segments = maps.Clone(p.Topology.Segments)
	return &c
}

// SameService reports whether both serve the same volumes. Neither may be nil.
func (p *StoragePlugin) SameService(o *StoragePlugin) bool {
	return p.ID == o.ID && p.Type == o.Type && p.Healthy == o.Healthy && p.MaxVolumes == o.MaxVolumes && p.Topology.Equal(o.Topology) &&
		p.NeedsController == o.NeedsController && p.Attaches == o.Attaches
}

// compare orders the plugins of a node.
func (p *StoragePlugin) compare(o *StoragePlugin) int {
	return cmp.Or(cmp.Compare(p.ID, o.ID), cmp.Compare(p.Type, o.Type))
}

// canonicalizeStorage sorts the storage plugins. It leaves a list with a missing one as it is:
// [Node.CheckStoragePlugins] refuses it.
func (n *Node) canonicalizeStorage() {
	n.StoragePlugins = orNil(n.StoragePlugins)
	if slices.Contains(n.StoragePlugins, nil) {
		return
	}
	slices.SortStableFunc(n.StoragePlugins, (*StoragePlugin).compare)
	for _, p := range n.StoragePlugins {
		p.Topology.Segments = orNilMap(p.Topology.Segments)
	}
}

// NodePlugin returns the node's plugin that mounts volumes with the id, or nil. A healthy one comes
// first.
func (n *Node) NodePlugin(id PluginID) *StoragePlugin {
	return n.storagePlugin(id, PluginType.Node)
}

// ControllerPlugin returns the node's plugin that attaches volumes with the id, or nil. A healthy one
// comes first.
func (n *Node) ControllerPlugin(id PluginID) *StoragePlugin {
	return n.storagePlugin(id, PluginType.Controller)
}

func (n *Node) storagePlugin(id PluginID, of func(PluginType) bool) *StoragePlugin {
	if n == nil {
		return nil
	}
	var found *StoragePlugin
	for _, p := range n.StoragePlugins {
		if p != nil && p.ID == id && of(p.Type) && (found == nil || p.Healthy && !found.Healthy) {
			found = p
		}
	}
	return found
}

// CheckStoragePlugins returns what is wrong with the node's storage plugins and its limits for
// volumes, or nil.
func (n *Node) CheckStoragePlugins() error {
	if n.VolumeAllowance < 0 || n.HoldLimit < 0 {
		return fmt.Errorf("VolumeAllowance is %s, HoldLimit is %s, and both must be >= 0", n.VolumeAllowance, n.HoldLimit)
	}
	if len(n.StoragePlugins) > MaxStoragePlugins {
		return fmt.Errorf("a node has at most %d storage plugins but found %d", MaxStoragePlugins, len(n.StoragePlugins))
	}
	for i, p := range n.StoragePlugins {
		if p == nil {
			return fmt.Errorf("storage plugin %d is missing", i)
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("storage plugin %q: %w", p.ID, err)
		}
		if slices.ContainsFunc(n.StoragePlugins[:i], func(o *StoragePlugin) bool { return o.compare(p) == 0 }) {
			return fmt.Errorf("storage plugin %q of type %s occurs twice", p.ID, p.Type)
		}
	}
	return nil
}

func (p *StoragePlugin) check() error {
	if err := CheckID(p.ID); err != nil {
		return fmt.Errorf("invalid id: %w", err)
	}
	if !p.Type.Valid() {
		return fmt.Errorf("invalid type: %q", p.Type)
	}
	if p.MaxVolumes < 0 {
		return fmt.Errorf("MaxVolumes must be >= 0 but found %d", p.MaxVolumes)
	}
	size := len(p.Alloc) + len(p.HealthDescription) + len(p.Provider) + len(p.Version) + len(p.NodeID) + mapBytes(p.Topology.Segments)
	if size > MaxStoragePluginBytes {
		return fmt.Errorf("its texts have at most %d bytes but found %d", MaxStoragePluginBytes, size)
	}
	return checkMap("Topology", p.Topology.Segments)
}
