package cluster

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// DeviceKind names the devices of one kind: all devices of a kind are alike.
type DeviceKind struct{ Vendor, Type, Name string }

// String returns "vendor/type/name".
func (k DeviceKind) String() string { return k.Vendor + "/" + k.Type + "/" + k.Name }

// Order orders kinds by vendor, type and name.
func (k DeviceKind) Order(o DeviceKind) int {
	return cmp.Or(cmp.Compare(k.Vendor, o.Vendor), cmp.Compare(k.Type, o.Type), cmp.Compare(k.Name, o.Name))
}

// DeviceGroup are the devices of one kind that a node has.
type DeviceGroup struct {
	Kind DeviceKind
	// Attributes are facts about each of the devices by name, or nil.
	Attributes map[string]DeviceAttribute `codec:",omitempty"`
	// Devices are in the order of their ids. No id occurs twice.
	Devices []Device
}

// DeviceProblem is the name of a node attribute that lists the devices that the servers would refuse, and
// why. With a dot and the name of a device plugin it is why the plugin has no devices, or which parts of its
// report the client ignores. The texts are for operators. A node without a problem does not have the attribute.
const DeviceProblem = "unique.device_problem"

// DeviceProblems returns the texts of the node's attributes of [DeviceProblem] by the name of the plugin, which
// is empty for what the servers would refuse.
func DeviceProblems(attributes map[string]string) map[string]string {
	problems := make(map[string]string)
	for name, text := range attributes {
		if plugin, is := strings.CutPrefix(name, DeviceProblem+"."); is {
			problems[plugin] = text
		} else if name == DeviceProblem {
			problems[""] = text
		}
	}
	return problems
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

// Device returns the device with the id, or nil. The devices are in the order of their ids.
func (g *DeviceGroup) Device(id string) *Device {
	i, found := slices.BinarySearchFunc(g.Devices, id, func(d Device, id string) int { return cmp.Compare(d.ID, id) })
	if !found {
		return nil
	}
	return &g.Devices[i]
}

// FulfilsAs reports whether both have the same devices for tasks: descriptions and places do not count.
func (g *DeviceGroup) FulfilsAs(o *DeviceGroup) bool {
	return g.Kind == o.Kind && maps.Equal(g.Attributes, o.Attributes) &&
		slices.EqualFunc(g.Devices, o.Devices, func(a, b Device) bool { return a.ID == b.ID && a.Healthy == b.Healthy })
}

// DeviceGroup returns the node's devices of the kind, or nil. The groups are in the order of their kinds.
func (n *Node) DeviceGroup(k DeviceKind) *DeviceGroup {
	i, found := slices.BinarySearchFunc(n.Devices, k, func(g *DeviceGroup, k DeviceKind) int { return g.Kind.Order(k) })
	if !found {
		return nil
	}
	return n.Devices[i]
}

// Device is one device of a node.
type Device struct {
	// ID is unique among the devices of the node's kind.
	ID string
	// Healthy devices may be assigned to tasks. A task that has a device keeps it when the device becomes
	// unhealthy.
	Healthy bool
	// HealthDescription is the reason of Healthy, in words.
	HealthDescription string `codec:",omitempty"`
	// PCIBusID is the address of the device, or empty.
	PCIBusID string `codec:",omitempty"`
}

// DeviceAttribute is a fact about a device. Kind is the kind of the value that it has.
type DeviceAttribute struct {
	Kind  AttributeKind
	Int   int64   `codec:",omitempty"`
	Float float64 `codec:",omitempty"`
	Bool  bool    `codec:",omitempty"`
	Text  string  `codec:",omitempty"`
	// Unit is the unit of a number, such as "MiB", or empty.
	Unit string `codec:",omitempty"`
}

// AttributeKind is the kind of the value of a [DeviceAttribute].
type AttributeKind uint8

// The values of [AttributeKind].
const (
	AttributeText AttributeKind = iota
	AttributeInt
	AttributeFloat
	AttributeBool
)

// String returns the value with its unit, such as "11441 MiB".
func (a DeviceAttribute) String() string {
	var text string
	switch a.Kind {
	case AttributeInt:
		text = strconv.FormatInt(a.Int, 10)
	case AttributeFloat:
		text = strconv.FormatFloat(a.Float, 'g', -1, 64)
	case AttributeBool:
		return strconv.FormatBool(a.Bool)
	default:
		return a.Text
	}
	if a.Unit == "" {
		return text
	}
	return text + " " + a.Unit
}

// DeviceRequest is what a task requests of the devices of a node. All devices of one request are of one
// kind.
type DeviceRequest struct {
	// Name is "type", "vendor/type" or "vendor/type/name".
	Name  string
	Count int
	// Constraints and Affinities speak of the attributes of the devices. Their targets are texts, or
	// ${device.attr.NAME}, ${device.ids}, ${device.vendor}, ${device.type} and ${device.model}. One that
	// names ${device.ids} speaks of each device by itself, the others of all devices of a kind.
	Constraints []Constraint `codec:",omitempty"`
	Affinities  []Affinity   `codec:",omitempty"`
}

// Matches reports whether the request's name names the kind.
func (r *DeviceRequest) Matches(k DeviceKind) bool {
	return r.Name == k.Type || r.Name == k.Vendor+"/"+k.Type || r.Name == k.String()
}

// Equal reports whether both requests are for the same devices. An empty list equals a nil one.
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

// Requests yields the group's requests for devices with the names of their tasks, in the order of
// [AssignedDevices].
func (g *TaskGroup) Requests() iter.Seq2[string, *DeviceRequest] {
	return partsOf(g, nil, func(t *Task) []DeviceRequest { return t.Devices })
}

// DevicesInUse are the devices of one node that allocations have, by kind and id.
type DevicesInUse map[DeviceKind]map[string]bool

// Add adds the devices of an allocation; nil are none.
func (u DevicesInUse) Add(a *AssignedDevices) {
	if a == nil {
		return
	}
	for _, d := range a.All {
		if u[d.Kind] == nil {
			u[d.Kind] = make(map[string]bool)
		}
		for _, id := range d.IDs {
			u[d.Kind][id] = true
		}
	}
}
