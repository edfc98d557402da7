package wire

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// Volume is a volume in full, and what a registration has of one.
type Volume struct {
	ID         string
	Namespace  string
	Name       string
	ExternalID string
	PluginID   string
	// RequestedCapabilities are the modes in which the volume may be used.
	RequestedCapabilities []VolumeCapability
	// AccessMode and AttachmentMode are those of its claims, or empty. In a registration without
	// RequestedCapabilities they are the only ones.
	AccessMode     string
	AttachmentMode string
	MountOptions   *MountOptions
	Secrets        map[string]string
	Parameters     map[string]string
	Context        map[string]string
	// Capacity is in bytes.
	Capacity   int64
	Topologies []Topology
	// RequestedTopologies are read in a registration without Topologies, as the reference's command sends
	// them: those that are required are where the volume can be reached.
	RequestedTopologies *TopologyRequest `json:",omitempty"`

	// The following fields are only in answers.

	// ReadAllocs and WriteAllocs have the allocations with a claim as keys, and no values. Allocations
	// are the same allocations, as far as they exist.
	ReadAllocs  map[string]*Allocation
	WriteAllocs map[string]*Allocation
	Allocations []*AllocationListStub
	VolumeHealth
	ProviderVersion string
	// Claims are all claims. Ours.
	Claims []VolumeClaim `json:",omitempty"`
	// ControllerCalls are the calls of controllers for the volume that fail. Ours.
	ControllerCalls []ControllerCall `json:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
	// CreateTime and ModifyTime are in Unix nanoseconds.
	CreateTime int64
	ModifyTime int64
}

// VolumeHealth sums up the storage plugin of a volume.
type VolumeHealth struct {
	// Schedulable means that an allocation could use the volume on some node, if a claim is free.
	Schedulable         bool
	Provider            string
	ControllerRequired  bool
	ControllersHealthy  int
	ControllersExpected int
	NodesHealthy        int
	NodesExpected       int
	// ResourceExhausted is always zero.
	ResourceExhausted time.Time
}

// VolumeCapability is one way to use a volume.
type VolumeCapability struct {
	AccessMode     string
	AttachmentMode string
}

// MountOptions describe how a file system is mounted.
type MountOptions struct {
	FSType     string
	MountFlags []string
}

// Topology is where a volume or a node is.
type Topology struct{ Segments map[string]string }

// TopologyRequest is where a volume can be reached. Preferred places have no effect.
type TopologyRequest struct {
	Required  []Topology
	Preferred []Topology
}

// VolumeClaim is the right of an allocation to use a volume. Ours.
type VolumeClaim struct {
	Namespace string
	Volume    string
	AllocID   string
	NodeID    string
	// Mode is read or write.
	Mode           string
	AccessMode     string
	AttachmentMode string
	// State is a number of the compatible API: 0 taken, 1 node detached, 2 controller detached,
	// 3 ready to free, 4 unpublishing. StateDescription is its name.
	State            uint8
	StateDescription string
	// Waits is what the claim waits for if the servers cannot reach its node, or is empty.
	Waits string `json:",omitempty"`
	// Controller means that a controller attaches the volume, and Attached that it has.
	Controller bool
	Attached   bool
	// ExternalNodeID is what the plugin calls the node.
	ExternalNodeID string `json:",omitempty"`
	// PublishContext is only in the answer to the node's client.
	PublishContext map[string]string `json:",omitempty"`
	CreateIndex    uint64
	ModifyIndex    uint64
}

// VolumeListStub is a volume in a list.
type VolumeListStub struct {
	ID             string
	Namespace      string
	Name           string
	ExternalID     string
	Topologies     []Topology
	AccessMode     string
	AttachmentMode string
	CurrentReaders int
	CurrentWriters int
	PluginID       string
	VolumeHealth
	CreateIndex uint64
	ModifyIndex uint64
	CreateTime  int64
	ModifyTime  int64
}

// VolumeRegisterRequest is the body of PUT /v1/volume/csi/{id}. It holds one volume.
type VolumeRegisterRequest struct{ Volumes []*Volume }

// VolumeRegisterResponse answers a [VolumeRegisterRequest].
type VolumeRegisterResponse struct {
	Volumes  []*Volume
	Warnings string
	// Index is that of the entry. Ours.
	Index uint64
}

// ClaimedVolumes answers GET /v1/node/{id}/volumes: the volumes that allocations on a node claim, with
// all that their client needs. Ours.
type ClaimedVolumes struct {
	Index   uint64
	Volumes []ClaimedVolume
}

// ClaimedVolume is a volume with its claims on one node.
type ClaimedVolume struct {
	// Volume is nil if the volume was deregistered by force.
	Volume *Volume
	Claims []VolumeClaim
}

// ClaimsRequest is the body of PUT /v1/client/{id}/claims: the client has taken these volumes off the
// node. Ours.
type ClaimsRequest struct{ Released []ClaimRelease }

// ClaimRelease names a claim.
type ClaimRelease struct {
	Namespace string
	Volume    string
	AllocID   string
}

// ClaimsResponse answers a [ClaimsRequest]. Ours.
type ClaimsResponse struct {
	// Index is that of the entry that was written.
	Index uint64
	State StateID `json:",omitzero"`
}

// Volume returns the volume of a registration, with its defaults.
func (w *Volume) Volume() *cluster.Volume {
	v := &cluster.Volume{
		Namespace: cluster.Namespace(w.Namespace), ID: cluster.VolumeID(w.ID), Name: w.Name, ExternalID: w.ExternalID,
		Plugin: cluster.PluginID(w.PluginID), MountOptions: w.MountOptions.options(), Secrets: w.Secrets, Parameters: w.Parameters,
		Context: w.Context, CapacityBytes: w.Capacity,
	}
	modes := w.RequestedCapabilities
	if len(modes) == 0 && w.AccessMode != "" {
		modes = []VolumeCapability{{w.AccessMode, w.AttachmentMode}}
	}
	for _, c := range modes {
		v.Capabilities = append(v.Capabilities, c.capability())
	}
	topologies := w.Topologies
	if len(topologies) == 0 && w.RequestedTopologies != nil {
		topologies = w.RequestedTopologies.Required
	}
	for _, t := range topologies {
		v.Topologies = append(v.Topologies, cluster.Topology(t))
	}
	v.Canonicalize()
	return v
}

func (w VolumeCapability) capability() cluster.VolumeCapability {
	return cluster.VolumeCapability{Access: cluster.AccessMode(w.AccessMode), Attachment: cluster.AttachmentMode(w.AttachmentMode)}
}

func (w *MountOptions) options() *cluster.MountOptions {
	if w == nil {
		return nil
	}
	return &cluster.MountOptions{FSType: w.FSType, Flags: w.MountFlags}
}

func newMountOptions(o *cluster.MountOptions) *MountOptions {
	if o == nil {
		return nil
	}
	return &MountOptions{FSType: o.FSType, MountFlags: o.Flags}
}

func newTopologies(topologies []cluster.Topology) []Topology {
	list := make([]Topology, len(topologies))
	for i, t := range topologies {
		list[i] = Topology(t)
	}
	return list
}

// NewVolume returns the volume without claims. plugin is its storage plugin, or nil if no node reports it.
func NewVolume(v *cluster.Volume, plugin *volumes.Plugin) *Volume {
	w := &Volume{
		ID: string(v.ID), Namespace: string(v.Namespace), Name: v.Name, ExternalID: v.ExternalID, PluginID: string(v.Plugin),
		MountOptions: newMountOptions(v.MountOptions), Secrets: object(v.Secrets), Parameters: object(v.Parameters), Context: object(v.Context),
		Capacity: v.CapacityBytes, Topologies: newTopologies(v.Topologies), VolumeHealth: newVolumeHealth(plugin),
		ReadAllocs: map[string]*Allocation{}, WriteAllocs: map[string]*Allocation{}, Allocations: []*AllocationListStub{},
		CreateIndex: v.CreateIndex, ModifyIndex: v.ModifyIndex, CreateTime: unixNano(v.CreateTime), ModifyTime: unixNano(v.ModifyTime),
	}
	if plugin != nil {
		w.ProviderVersion = plugin.Version
	}
	for _, c := range v.Capabilities {
		w.RequestedCapabilities = append(w.RequestedCapabilities, VolumeCapability{string(c.Access), string(c.Attachment)})
	}
	return w
}

// Claim adds a claim. alloc is its allocation as a list has it, or nil if it is gone.
func (w *Volume) Claim(c *cluster.VolumeClaim, waits string, alloc *AllocationListStub) {
	claim := NewVolumeClaim(c)
	claim.Waits, claim.PublishContext = waits, nil
	w.Claims = append(w.Claims, claim)
	w.AccessMode, w.AttachmentMode = claim.AccessMode, claim.AttachmentMode
	if c.Writes() {
		w.WriteAllocs[claim.AllocID] = nil
	} else {
		w.ReadAllocs[claim.AllocID] = nil
	}
	if alloc != nil {
		w.Allocations = append(w.Allocations, alloc)
	}
}

// NewVolumeClaim returns the claim, with the answer of a controller.
func NewVolumeClaim(c *cluster.VolumeClaim) VolumeClaim {
	return VolumeClaim{
		Namespace: string(c.Volume.Namespace), Volume: string(c.Volume.ID), AllocID: string(c.Alloc), NodeID: string(c.Node), Mode: string(c.Mode),
		AccessMode: string(c.Capability.Access), AttachmentMode: string(c.Capability.Attachment),
		State: uint8(c.State), StateDescription: c.State.String(), Controller: c.Controller, Attached: c.Attached,
		ExternalNodeID: c.ExternalNodeID, PublishContext: c.PublishContext, CreateIndex: c.CreateIndex, ModifyIndex: c.ModifyIndex,
	}
}

// NewVolumeListStub returns the volume as a list has it, with as many claims of each mode.
func NewVolumeListStub(v *cluster.Volume, plugin *volumes.Plugin, used cluster.VolumeCapability, readers, writers int) *VolumeListStub {
	return &VolumeListStub{
		ID: string(v.ID), Namespace: string(v.Namespace), Name: v.Name, ExternalID: v.ExternalID, PluginID: string(v.Plugin),
		Topologies: newTopologies(v.Topologies), AccessMode: string(used.Access), AttachmentMode: string(used.Attachment),
		CurrentReaders: readers, CurrentWriters: writers, VolumeHealth: newVolumeHealth(plugin),
		CreateIndex: v.CreateIndex, ModifyIndex: v.ModifyIndex, CreateTime: unixNano(v.CreateTime), ModifyTime: unixNano(v.ModifyTime),
	}
}

func newVolumeHealth(p *volumes.Plugin) VolumeHealth {
	if p == nil {
		return VolumeHealth{}
	}
	h := VolumeHealth{Provider: p.Provider, ControllerRequired: p.NeedsController}
	h.NodesExpected, h.NodesHealthy, h.ControllersExpected, h.ControllersHealthy = p.Count()
	h.Schedulable = h.NodesHealthy > 0 && (!h.ControllerRequired || h.ControllersHealthy > 0)
	return h
}

// Claim returns the claim that a node's client reads.
func (w VolumeClaim) Claim() *cluster.VolumeClaim {
	return &cluster.VolumeClaim{
		Volume: cluster.VolumeKey{Namespace: cluster.Namespace(w.Namespace), ID: cluster.VolumeID(w.Volume)},
		Alloc:  cluster.AllocID(w.AllocID), Node: cluster.NodeID(w.NodeID), Mode: cluster.ClaimMode(w.Mode),
		Capability: VolumeCapability{w.AccessMode, w.AttachmentMode}.capability(), State: cluster.ClaimState(w.State),
		Controller: w.Controller, Attached: w.Attached, PublishContext: w.PublishContext, ExternalNodeID: w.ExternalNodeID,
		CreateIndex: w.CreateIndex, ModifyIndex: w.ModifyIndex,
	}
}

// Changes are the changes of claims on the node.
func (r *ClaimsRequest) Changes(node cluster.NodeID) []cluster.ClaimChange {
	changes := make([]cluster.ClaimChange, len(r.Released))
	for i, c := range r.Released {
		k := cluster.ClaimKey{Volume: cluster.VolumeKey{Namespace: cluster.Namespace(c.Namespace), ID: cluster.VolumeID(c.Volume)}, Alloc: cluster.AllocID(c.AllocID)}
		changes[i] = cluster.ClaimChange{Claim: k, Node: node, Cause: cluster.CauseNode}
	}
	return changes
}

// ControllerCall is a call of a storage plugin's controller that a claim waits for and that has failed so
// far, or that no controller can serve. The leader repeats it until it succeeds. Ours.
type ControllerCall struct {
	// Call is attach or detach.
	Call      string
	Namespace string
	Volume    string
	PluginID  string
	// NodeID is the node to which the volume is attached, or from which it is detached.
	NodeID string
	// NoController means that no healthy controller of the plugin attaches volumes. The next attempt waits for
	// one.
	NoController bool
	// Failures counts the attempts, all of which failed. A new leader counts from zero. Without any, the
	// fields that follow are zero.
	Failures int
	// ControllerNodeID is the node of the controller that was called last. LastError is why that attempt
	// failed, and LastAt when.
	ControllerNodeID string
	LastError        string
	LastAt           Time
	// NextAt is when the next attempt begins at the earliest, and InFlight means that one has begun.
	NextAt   Time
	InFlight bool
}

// NewControllerCall returns the call.
func NewControllerCall(c volumes.FailedCall) ControllerCall {
	w := ControllerCall{
		Call: "attach", Namespace: string(c.Volume.Namespace), Volume: string(c.Volume.ID), PluginID: string(c.Plugin), NodeID: string(c.Node),
		NoController: c.NoController, Failures: c.Failures, ControllerNodeID: string(c.Controller), LastError: c.LastError, LastAt: NewTime(c.LastAt), NextAt: NewTime(c.NextAt),
		InFlight: c.InFlight,
	}
	if c.Detach {
		w.Call = "detach"
	}
	return w
}
