package cluster

import (
	"maps"
	"slices"
	"time"
)

// Eligibility is whether a scheduler may place allocations on a node.
type Eligibility string

// The values of [Eligibility].
const (
	NodeEligible   Eligibility = "eligible"
	NodeIneligible Eligibility = "ineligible"
)

// Valid reports whether e is one of the two values.
func (e Eligibility) Valid() bool { return e == NodeEligible || e == NodeIneligible }

// NodeStatus is the state of a node's heartbeat at the servers.
type NodeStatus string

// The values of [NodeStatus].
const (
	NodeInitializing NodeStatus = "initializing"
	NodeReady        NodeStatus = "ready"
	NodeDown         NodeStatus = "down"
	NodeDisconnected NodeStatus = "disconnected"
)

// Valid reports whether s is one of the four values.
func (s NodeStatus) Valid() bool {
	return s == NodeInitializing || s == NodeReady || s == NodeDown || s == NodeDisconnected
}

// Node is a machine that runs allocations.
type Node struct {
	ID         NodeID
	SecretID   string
	Name       string
	Datacenter string
	NodeClass  string
	// NodePool is "default" if the node names none.
	NodePool   string
	HTTPAddr   string
	TLSEnabled bool
	Attributes map[string]string
	Meta       map[string]string
	Links      map[string]string

	// Resources is the capacity of the node. Reserved is the part that allocations may not use.
	Resources Resources
	Reserved  Resources
	// MaxAllocs bounds the allocations on the node; zero is no bound.
	MaxAllocs int
	// ReportsDrivers means that Drivers are all drivers of the node. A node that does not report its
	// drivers, such as a simulated one, counts as one with every driver.
	ReportsDrivers bool `codec:",omitempty"`
	// Drivers are the task drivers of the node by name.
	Drivers map[string]*DriverInfo `codec:",omitempty"`
	// MaxKillTimeout bounds the kill timeout of every task on the node; zero is no bound.
	MaxKillTimeout time.Duration `codec:",omitempty"`
	// Devices are the devices of the node, in the order of their kinds.
	Devices []*DeviceGroup `codec:",omitempty"`
	// Network is the network whose ports allocations get, or nil: then no group with ports is placed on the
	// node.
	Network *NodeNetwork `codec:",omitempty"`
	// Cores are the cores that tasks can have for themselves.
	Cores Cores `codec:",omitempty"`
	// StoragePlugins are the storage plugins that run on the node, in the order of their ids and types.
	StoragePlugins []*StoragePlugin `codec:",omitempty"`
	// VolumeAllowance is how long the client may need to take the volumes of an allocation off the
	// node after its tasks have ended. HoldLimit is how long the client lets a storage plugin that must
	// stop wait for volumes on the node.
	VolumeAllowance time.Duration `codec:",omitempty"`
	HoldLimit       time.Duration `codec:",omitempty"`
	// Unlisted are the allocations that the client may run and that the servers do not list, by its last
	// registration. It is nil if no client has reported them.
	Unlisted *UnlistedAllocs `codec:",omitempty"`

	// Drain is the running drain, or nil; not nil exactly while the node drains.
	Drain *Drain
	// LastDrain is the compatible API's account of the last drain, or nil.
	LastDrain *DrainMetadata
	// Eligibility is ineligible while the node drains.
	SchedulingEligibility Eligibility

	Status            NodeStatus
	StatusDescription string
	// StatusUpdatedAt is in Unix seconds, and moves with drain and eligibility
	// writes too.
	StatusUpdatedAt int64
	// StatusChangedAt is when Status last took another value, or zero.
	StatusChangedAt time.Time
	// AwaySince is when the servers last lost contact with the node, or zero while it is reachable.
	// A change from disconnected to down keeps it.
	AwaySince time.Time `codec:",omitempty"`
	// Events are the last [MaxNodeEvents], oldest first.
	Events []NodeEvent

	LastMissedHeartbeatIndex uint64

	CreateIndex uint64
	ModifyIndex uint64
}

// MaxNodeEvents bounds [Node.Events]; the oldest are dropped.
const MaxNodeEvents = 10

// DefaultNodePool is the pool of a node that names none.
const DefaultNodePool = "default"

// AllNodePools is the pool of a job that may run in every pool.
const AllNodePools = "all"

// Canonicalize fills in the empty fields of a registration. It makes a draining node ineligible.
func (n *Node) Canonicalize() {
	if n.NodePool == "" {
		n.NodePool = DefaultNodePool
	}
	if n.Status == "" {
		n.Status = NodeInitializing
	}
	n.ReportsDrivers = n.ReportsDrivers || n.Drivers != nil
	n.Drivers = orNilMap(n.Drivers)
	for _, d := range n.Drivers { //lint:order each driver by itself
		if d != nil {
			d.Attributes = orNilMap(d.Attributes)
		}
	}
	n.Cores = orNil(n.Cores)
	n.canonicalizeStorage()
	n.canonicalizeDevices()
	switch {
	case n.Drain != nil:
		n.SchedulingEligibility = NodeIneligible
	case n.SchedulingEligibility == "":
		n.SchedulingEligibility = NodeEligible
	}
}

// Draining reports whether the node drains. A nil node does not.
func (n *Node) Draining() bool { return n != nil && n.Drain != nil }

// Ready reports whether a scheduler may place allocations on the node.
func (n *Node) Ready() bool {
	return n != nil && n.Status == NodeReady && n.Drain == nil && n.SchedulingEligibility == NodeEligible
}

// Reachable reports whether the node exists and is neither down nor disconnected, so that its
// allocations count. A nil node is not reachable.
func (n *Node) Reachable() bool {
	return n != nil && n.Status != NodeDown && n.Status != NodeDisconnected
}

// Available is the capacity for allocations: Resources less Reserved.
func (n *Node) Available() Resources { return n.Resources.Minus(n.Reserved) }

// Free is the capacity for more allocations beside the usage. It may be negative.
func (n *Node) Free(used Usage) Resources { return n.Available().Bounded().Minus(used.Resources) }

// AppendEvent appends an event made at a raft index and drops the oldest beyond [MaxNodeEvents].
// It never writes to the slice that n.Events shares with a copy.
func (n *Node) AppendEvent(e NodeEvent, index uint64) {
	e.CreateIndex = index
	events := append(slices.Clone(n.Events), e)
	if extra := len(events) - MaxNodeEvents; extra > 0 {
		events = events[extra:]
	}
	n.Events = events
}

// Copy returns a copy that shares nothing with n that either may write to.
func (n *Node) Copy() *Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Attributes = cloneMap(n.Attributes)
	c.Meta = cloneMap(n.Meta)
	c.Links = cloneMap(n.Links)
	c.Drivers = maps.Clone(n.Drivers)
	for name, d := range c.Drivers { //lint:order each driver by itself
		c.Drivers[name] = d.Copy()
	}
	c.Devices = slices.Clone(n.Devices)
	for i, g := range c.Devices {
		c.Devices[i] = g.Copy()
	}
	c.Network, c.Cores = n.Network.Copy(), slices.Clone(n.Cores)
	c.StoragePlugins = slices.Clone(n.StoragePlugins)
	for i, p := range c.StoragePlugins {
		c.StoragePlugins[i] = p.Copy()
	}
	c.Unlisted = n.Unlisted.Copy()
	c.Drain = n.Drain.Copy()
	c.LastDrain = n.LastDrain.Copy()
	c.Events = slices.Clone(n.Events)
	for i := range c.Events {
		c.Events[i].Details = cloneMap(c.Events[i].Details)
	}
	return &c
}

// NodeEvent is one line of a node's history.
type NodeEvent struct {
	Message   string
	Subsystem string
	// Details are more facts by name, or nil.
	Details   map[string]string
	Timestamp time.Time
	// CreateIndex is zero for the registration's own event.
	CreateIndex uint64
}

// The subsystems and messages of node events, as the compatible API words them.
const (
	SubsystemDrain   = "Drain"
	SubsystemCluster = "Cluster"

	EventNodeRegistered        = "Node registered"
	EventNodeReregistered      = "Node re-registered"
	EventHeartbeatMissed       = "Node heartbeat missed"
	EventHeartbeatReregister   = "Node reregistered by heartbeat"
	EventDrainSet              = "Node drain strategy set"
	EventDrainUpdated          = "Node drain strategy updated"
	EventDrainPaused           = "Node drain paused"
	EventDrainResumed          = "Node drain resumed"
	EventDrainDisabled         = "Node drain disabled"
	EventDrainComplete         = "Node drain complete"
	EventNodeEligible          = "Node marked as eligible for scheduling"
	EventNodeIneligible        = "Node marked as ineligible for scheduling"
	EventProcessRefused        = "Second client process refused"
	EventDetailDeadlineReached = "deadline_reached"
	EventDetailVolumesLeft     = "volumes_left"
	EventDetailUnconfirmed     = "unconfirmed"
	EventDetailDataNotCopied   = "data_not_copied"
	EventDetailProcess         = "process"
)

// cloneMap distinguishes a nil map from an empty one.
func cloneMap(m map[string]string) map[string]string { return maps.Clone(m) }
