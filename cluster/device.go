package cluster

import (
	"maps"
	"slices"
)

// DeviceKind names the devices of one kind: all devices of a kind are alike.
type DeviceKind struct{ Vendor, Type, Name string }

// String returns "vendor/type/name".
func (k DeviceKind) String() string { return k.Vendor + "/" + k.Type + "/" + k.Name }

// DeviceGroup are the devices of one kind that a node has.
type DeviceGroup struct {
	Kind DeviceKind
	// Attributes are facts about each of the devices by name, or nil.
	Attributes map[string]DeviceAttribute `codec:",omitempty"`
	// Devices are in the order of their ids. No id occurs twice.
	Devices []Device
}

// Copy returns a copy that shares nothing with g.
func (g *DeviceGroup) Copy() *DeviceGroup {
	if g == nil {
		return nil
	}
	c := *g
	c.Attributes, c.Devices = maps.Clone(g.Attributes), slices.Clone(g.Devices)
	return &c
}

// Device is one device of a node.
type Device struct {
	// ID is unique among the devices of the node's kind.
	ID string
	// Healthy devices may be given to tasks. A task that has a device keeps it when the device becomes
	// unhealthy.
	Healthy bool
	// HealthDescription says why, in words.
	HealthDescription string `codec:",omitempty"`
	// PCIBusID says where the device is, or is empty.
	PCIBusID string `codec:",omitempty"`
}

// DeviceAttribute is a fact about a device. Kind says which of the values it has.
type DeviceAttribute struct {
	Kind  AttributeKind
	Int   int64   `codec:",omitempty"`
	Float float64 `codec:",omitempty"`
	Bool  bool    `codec:",omitempty"`
	Text  string  `codec:",omitempty"`
	// Unit is the unit of a number, such as "MiB", or empty.
	Unit string `codec:",omitempty"`
}

// AttributeKind says which value a [DeviceAttribute] has.
type AttributeKind uint8

// The values of [AttributeKind].
const (
	AttributeText AttributeKind = iota
	AttributeInt
	AttributeFloat
	AttributeBool
)

// DeviceRequest is what a task asks of the devices of a node. All devices of one request are of one
// kind.
type DeviceRequest struct {
	// Name is "type", "vendor/type" or "vendor/type/name".
	Name  string
	Count int
	// Constraints and Affinities speak of the attributes of the devices. Their targets are texts, or
	// ${device.attr.NAME}, ${device.ids}, ${device.vendor}, ${device.type} and ${device.model}.
	Constraints []Constraint `codec:",omitempty"`
	Affinities  []Affinity   `codec:",omitempty"`
}

// Equal reports whether both requests ask for the same. An empty list equals a nil one.
func (r DeviceRequest) Equal(o DeviceRequest) bool {
	return r.Name == o.Name && r.Count == o.Count && slices.Equal(r.Constraints, o.Constraints) && slices.Equal(r.Affinities, o.Affinities)
}

// Affinity prefers devices on which its constraint holds. Weight is between -100 and 100, and not
// zero: a negative one avoids them.
type Affinity struct {
	Constraint Constraint
	Weight     int
}

// AssignedDevices are the devices of an allocation, in the order of its tasks and of their requests.
type AssignedDevices struct{ All []AssignedDevice }

// AssignedDevice are the devices that one request of one task has got.
type AssignedDevice struct {
	Task string
	Kind DeviceKind
	IDs  []string
}
