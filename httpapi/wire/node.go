package wire

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Node is a node in full.
type Node struct {
	ID string
	// SecretID is read in a registration, and always empty in an answer.
	SecretID   string
	Name       string
	Datacenter string
	NodePool   string
	NodeClass  string
	HTTPAddr   string
	TLSEnabled bool
	Attributes map[string]string
	Meta       map[string]string
	Links      map[string]string
	// ComputedClass is equal for nodes that are alike to the scheduler. It is only in answers.
	ComputedClass string

	// NodeResources and ReservedResources are never nil in an answer: the reference
	// command reads through them.
	NodeResources     *NodeResources
	ReservedResources *ReservedResources
	NodeMaxAllocs     int

	Status            string
	StatusDescription string
	// StatusUpdatedAt is in Unix seconds.
	StatusUpdatedAt       int64
	SchedulingEligibility string
	// Drain reports whether DrainStrategy is not nil.
	Drain         bool
	DrainStrategy *DrainStrategy
	LastDrain     *DrainMetadata
	Events        []NodeEvent
	// DrainID is the running drain, or empty. Ours.
	DrainID string `json:",omitempty"`

	// ReportsDrivers means that Drivers are all drivers of the node. Without it the node counts as one
	// with every driver. Ours.
	ReportsDrivers bool `json:",omitempty"`
	Drivers        map[string]*Driver
	// MaxKillTimeout bounds the kill timeouts of tasks on the node, in nanoseconds; zero is no bound.
	// Ours.
	MaxKillTimeout time.Duration `json:",omitempty"`

	// Fields that nodes of this system do not have: empty or null, as in the reference.
	HostVolumes  map[string]*Nothing
	HostNetworks map[string]*Nothing

	// CSIControllerPlugins and CSINodePlugins are the services of StoragePlugins by plugin. They are
	// only in answers.
	CSIControllerPlugins map[string]*CSIInfo
	CSINodePlugins       map[string]*CSIInfo
	// StoragePlugins are the storage plugins that run on the node. VolumeAllowance is how long the
	// client may need to take the volumes of an allocation off the node, HoldLimit how long it lets a
	// storage plugin that must stop wait for them, in nanoseconds. Ours.
	StoragePlugins  []*StoragePlugin `json:",omitempty"`
	VolumeAllowance time.Duration    `json:",omitempty"`
	HoldLimit       time.Duration    `json:",omitempty"`
	// Unlisted are the allocations that the client may run and that the servers do not list, or null if
	// no client has reported them. Ours.
	Unlisted *UnlistedAllocs `json:",omitempty"`

	LastAllocUpdateIndex     uint64
	LastMissedHeartbeatIndex uint64
	CreateIndex              uint64
	ModifyIndex              uint64
}

// Nothing is the value of a map that is always empty.
type Nothing struct{}

// Driver describes a task driver of a node.
type Driver struct {
	Attributes        map[string]string
	Detected          bool
	Healthy           bool
	HealthDescription string
	UpdateTime        Time
}

// NodeEvent is one event of a node's history.
type NodeEvent struct {
	Message     string
	Subsystem   string
	Details     map[string]string
	Timestamp   Time
	CreateIndex uint64
}

// NodeListStub is a node in a list.
type NodeListStub struct {
	// Address is the host of the node's HTTP address.
	Address    string
	ID         string
	Datacenter string
	Name       string
	NodeClass  string
	NodePool   string
	// Version is the node's attribute "nomad.version", or that of our client, "nodedrain.version".
	Version               string
	Drain                 bool
	SchedulingEligibility string
	Status                string
	StatusDescription     string
	Drivers               map[string]*Driver
	HostVolumes           map[string]*Nothing
	LastDrain             *DrainMetadata
	CreateIndex           uint64
	ModifyIndex           uint64
	// DrainID is the running drain, or empty. Ours.
	DrainID string `json:",omitempty"`

	// Attributes hold "os.name" if the request had os=true.
	Attributes map[string]string `json:",omitempty"`
	// NodeResources and ReservedResources are set if the request had resources=true.
	NodeResources     *NodeResources     `json:",omitempty"`
	ReservedResources *ReservedResources `json:",omitempty"`
}

// NewNode returns the node without its secret.
func NewNode(n *cluster.Node) *Node {
	w := &Node{
		ID: string(n.ID), Name: n.Name, Datacenter: n.Datacenter, NodePool: n.NodePool, NodeClass: n.NodeClass,
		HTTPAddr: n.HTTPAddr, TLSEnabled: n.TLSEnabled, Attributes: object(n.Attributes), Meta: object(n.Meta), Links: object(n.Links),
		ComputedClass: computedClass(n),
		NodeResources: newNodeResources(n), ReservedResources: newReservedResources(n), NodeMaxAllocs: n.MaxAllocs,
		Status: string(n.Status), StatusDescription: n.StatusDescription, StatusUpdatedAt: n.StatusUpdatedAt,
		SchedulingEligibility: string(n.SchedulingEligibility),
		LastDrain:             newDrainMetadata(n.LastDrain),
		ReportsDrivers:        n.ReportsDrivers,
		Drivers:               newDrivers(n.Drivers),
		MaxKillTimeout:        n.MaxKillTimeout,
		HostVolumes:           map[string]*Nothing{},
		StoragePlugins:        newStoragePlugins(n.StoragePlugins),
		VolumeAllowance:       n.VolumeAllowance,
		HoldLimit:             n.HoldLimit,
		Unlisted:              newUnlistedAllocs(n.Unlisted),

		LastMissedHeartbeatIndex: n.LastMissedHeartbeatIndex,
		CreateIndex:              n.CreateIndex,
		ModifyIndex:              n.ModifyIndex,
	}
	w.CSIControllerPlugins, w.CSINodePlugins = newCSIPlugins(n.StoragePlugins)
	if n.Draining() {
		w.Drain, w.DrainID, w.DrainStrategy = true, string(n.Drain.ID), newDrainStrategy(n.Drain.Strategy)
	}
	for _, e := range n.Events {
		w.Events = append(w.Events, NodeEvent{
			Message: e.Message, Subsystem: e.Subsystem, Details: e.Details, Timestamp: NewTime(e.Timestamp), CreateIndex: e.CreateIndex,
		})
	}
	return w
}

// NewNodeListStub returns the node as a list has it, without optional fields.
func NewNodeListStub(n *cluster.Node) *NodeListStub {
	w := &NodeListStub{
		Address: host(n.HTTPAddr), ID: string(n.ID), Datacenter: n.Datacenter, Name: n.Name, NodeClass: n.NodeClass, NodePool: n.NodePool,
		Version: cmp.Or(n.Attributes["nomad.version"], n.Attributes["nodedrain.version"]), Drain: n.Draining(), SchedulingEligibility: string(n.SchedulingEligibility),
		Status: string(n.Status), StatusDescription: n.StatusDescription,
		Drivers: newDrivers(n.Drivers), HostVolumes: map[string]*Nothing{}, LastDrain: newDrainMetadata(n.LastDrain),
		CreateIndex: n.CreateIndex, ModifyIndex: n.ModifyIndex,
	}
	if n.Draining() {
		w.DrainID = string(n.Drain.ID)
	}
	return w
}

// WithOS adds the name of the node's operating system.
func (w *NodeListStub) WithOS(n *cluster.Node) {
	w.Attributes = map[string]string{"os.name": n.Attributes["os.name"]}
}

// WithResources adds the node's resources and the reserved ones.
func (w *NodeListStub) WithResources(n *cluster.Node) {
	w.NodeResources, w.ReservedResources = newNodeResources(n), newReservedResources(n)
}

// Node returns the node that a client registers, with its secret. It leaves out the servers' fields
// (drain, events, indexes).
func (w *Node) Node() *cluster.Node {
	return &cluster.Node{
		ID: cluster.NodeID(w.ID), SecretID: w.SecretID, Name: w.Name, Datacenter: w.Datacenter, NodePool: w.NodePool, NodeClass: w.NodeClass,
		HTTPAddr: w.HTTPAddr, TLSEnabled: w.TLSEnabled, Attributes: w.Attributes, Meta: w.Meta, Links: w.Links,
		Resources: w.NodeResources.resources(), Reserved: w.ReservedResources.resources(), MaxAllocs: w.NodeMaxAllocs,
		Status: cluster.NodeStatus(w.Status), StatusDescription: w.StatusDescription,
		SchedulingEligibility: cluster.Eligibility(w.SchedulingEligibility),
		ReportsDrivers:        w.ReportsDrivers || len(w.Drivers) > 0, Drivers: registeredDrivers(w.Drivers), MaxKillTimeout: w.MaxKillTimeout,
		StoragePlugins: registeredPlugins(w.StoragePlugins), VolumeAllowance: w.VolumeAllowance, HoldLimit: w.HoldLimit,
		Devices: w.NodeResources.devices(), Network: w.NodeResources.network(w.ReservedResources), Cores: w.NodeResources.cores(), Unlisted: w.Unlisted.allocs(),
	}
}

// UnlistedAllocs are allocations that the client of a node may run and that the servers do not list.
// Allocs has the first 20 of Count by id.
type UnlistedAllocs struct {
	Count  int
	Allocs []string
}

func newUnlistedAllocs(u *cluster.UnlistedAllocs) *UnlistedAllocs {
	if u == nil {
		return nil
	}
	return &UnlistedAllocs{Count: u.Count, Allocs: IDs(u.Allocs)}
}

func (w *UnlistedAllocs) allocs() *cluster.UnlistedAllocs {
	if w == nil {
		return nil
	}
	u := &cluster.UnlistedAllocs{Count: w.Count}
	for _, id := range w.Allocs {
		u.Allocs = append(u.Allocs, cluster.AllocID(id))
	}
	return u
}

// object is the map, or an empty one for nil: the reference's clients write to it.
func object(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// computedClass is a hash of what a job can require of a node, except its resources. Attributes and
// metadata whose names begin with "unique." do not count.
func computedClass(n *cluster.Node) string {
	h := fnv.New64a()
	for _, name := range []string{n.Datacenter, n.NodePool, n.NodeClass} {
		fmt.Fprintf(h, "%q", name)
	}
	for _, m := range []map[string]string{n.Attributes, n.Meta} {
		fmt.Fprint(h, "|")
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !strings.HasPrefix(key, "unique.") {
				fmt.Fprintf(h, "%q=%q", key, m[key])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		fmt.Fprintf(h, "|%q=%t", name, n.HasDriver(name))
	}
	for _, g := range n.Devices {
		fmt.Fprintf(h, "|%q", g.Kind)
		for _, name := range slices.Sorted(maps.Keys(g.Attributes)) {
			fmt.Fprintf(h, "%q=%q", name, g.Attributes[name])
		}
	}
	return fmt.Sprintf("v1:%d", h.Sum64())
}

// host is the address without its port, if it has one.
func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

// EligibilityRequest is the body of PUT /v1/node/{id}/eligibility. NodeID is not used: the path
// names the node.
type EligibilityRequest struct {
	NodeID      string
	Eligibility string
}

// EligibilityResponse answers an [EligibilityRequest]. NodeModifyIndex is always zero,
// as the reference has it; Index is zero if nothing had to be written.
type EligibilityResponse struct {
	EvalCreateIndex uint64
	EvalIDs         []string
	Index           uint64
	NodeModifyIndex uint64
}

// NodeUpdateResponse answers PUT /v1/node/{id}/purge and …/evaluate.
type NodeUpdateResponse struct {
	EvalCreateIndex       uint64
	EvalIDs               []string
	Features              uint64
	HeartbeatTTL          int64
	Index                 uint64
	KnownLeader           bool
	LastContact           int64
	LeaderRPCAddr         string
	NextToken             string
	NodeModifyIndex       uint64
	NumNodes              int32
	SchedulingEligibility string
	Servers               []Nothing
	SignedIdentity        *string
}
