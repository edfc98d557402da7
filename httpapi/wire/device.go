package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// NodeDevices are the devices of one kind that a node has.
type NodeDevices struct {
	Vendor     string
	Type       string
	Name       string
	Instances  []*NodeDevice
	Attributes map[string]*Attribute
}

// NodeDevice is one device of a node.
type NodeDevice struct {
	ID                string
	Healthy           bool
	HealthDescription string
	// Locality is nil if it is not known.
	Locality *NodeDeviceLocality
}

// NodeDeviceLocality is where a device is.
type NodeDeviceLocality struct{ PciBusID string }

// Attribute is a fact about a device. One of its values is not nil.
type Attribute struct {
	FloatVal  *float64 `json:"Float,omitempty"`
	IntVal    *int64   `json:"Int,omitempty"`
	StringVal *string  `json:"String,omitempty"`
	BoolVal   *bool    `json:"Bool,omitempty"`
	// Unit is that of a number, or empty.
	Unit string
}

// DeviceRequest is a request for devices: "type", "vendor/type" or "vendor/type/name".
type DeviceRequest struct {
	Name string
	// Count is one if nil.
	Count       *uint64
	Constraints []Constraint `json:",omitempty"`
	Affinities  []Affinity   `json:",omitempty"`
}

// Affinity prefers devices.
type Affinity struct {
	LTarget string
	RTarget string
	Operand string
	// Weight is 50 if nil.
	Weight *int
}

// defaultWeight is that of an affinity that names none.
const defaultWeight = 50

// AllocatedDevices are the devices that one request of a task has got.
type AllocatedDevices struct {
	Vendor    string
	Type      string
	Name      string
	DeviceIDs []string
}

func newNodeDevices(groups []*cluster.DeviceGroup) []*NodeDevices {
	var list []*NodeDevices
	for _, g := range groups {
		w := &NodeDevices{Vendor: g.Kind.Vendor, Type: g.Kind.Type, Name: g.Kind.Name, Instances: []*NodeDevice{}, Attributes: map[string]*Attribute{}}
		for name, a := range g.Attributes {
			w.Attributes[name] = newAttribute(a)
		}
		for _, d := range g.Devices {
			one := &NodeDevice{ID: d.ID, Healthy: d.Healthy, HealthDescription: d.HealthDescription}
			if d.PCIBusID != "" {
				one.Locality = &NodeDeviceLocality{PciBusID: d.PCIBusID}
			}
			w.Instances = append(w.Instances, one)
		}
		list = append(list, w)
	}
	return list
}

// deviceGroups are the devices that a client registers. A missing group or device becomes an empty one,
// which [cluster.Node.CheckDevices] refuses.
func deviceGroups(list []*NodeDevices) []*cluster.DeviceGroup {
	var groups []*cluster.DeviceGroup
	for _, w := range list {
		if w == nil {
			w = &NodeDevices{}
		}
		g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: w.Vendor, Type: w.Type, Name: w.Name}}
		for name, a := range w.Attributes {
			if a == nil {
				continue
			}
			if g.Attributes == nil {
				g.Attributes = make(map[string]cluster.DeviceAttribute, len(w.Attributes))
			}
			g.Attributes[name] = a.attribute()
		}
		for _, d := range w.Instances {
			if d == nil {
				d = &NodeDevice{}
			}
			one := cluster.Device{ID: d.ID, Healthy: d.Healthy, HealthDescription: d.HealthDescription}
			if d.Locality != nil {
				one.PCIBusID = d.Locality.PciBusID
			}
			g.Devices = append(g.Devices, one)
		}
		groups = append(groups, g)
	}
	return groups
}

func newAttribute(a cluster.DeviceAttribute) *Attribute {
	w := &Attribute{Unit: a.Unit}
	switch a.Kind {
	case cluster.AttributeInt:
		w.IntVal = &a.Int
	case cluster.AttributeFloat:
		w.FloatVal = &a.Float
	case cluster.AttributeBool:
		w.BoolVal = &a.Bool
	default:
		w.StringVal = &a.Text
	}
	return w
}

// attribute keeps the unit, so that the check of a node refuses one without a number.
func (w *Attribute) attribute() cluster.DeviceAttribute {
	a := cluster.DeviceAttribute{Unit: w.Unit}
	switch {
	case w.IntVal != nil:
		a.Kind, a.Int = cluster.AttributeInt, *w.IntVal
	case w.FloatVal != nil:
		a.Kind, a.Float = cluster.AttributeFloat, *w.FloatVal
	case w.BoolVal != nil:
		a.Kind, a.Bool = cluster.AttributeBool, *w.BoolVal
	default:
		a.Text = orZero(w.StringVal)
	}
	return a
}

func newDeviceRequests(requests []cluster.DeviceRequest) []DeviceRequest {
	var list []DeviceRequest
	for _, r := range requests {
		w := DeviceRequest{Name: r.Name, Count: new(uint64(r.Count)), Constraints: newConstraints(r.Constraints)}
		for _, a := range r.Affinities {
			w.Affinities = append(w.Affinities, Affinity{
				LTarget: a.Constraint.LTarget, RTarget: a.Constraint.RTarget, Operand: a.Constraint.Operand, Weight: new(a.Weight),
			})
		}
		list = append(list, w)
	}
	return list
}

func deviceRequests(list []DeviceRequest) ([]cluster.DeviceRequest, error) {
	var requests []cluster.DeviceRequest
	for _, w := range list {
		r := cluster.DeviceRequest{Name: w.Name, Count: 1}
		if w.Count != nil {
			if *w.Count > cluster.MaxDeviceCount {
				return nil, fmt.Errorf("device %q: Count is at most %d but found %d", w.Name, cluster.MaxDeviceCount, *w.Count)
			}
			r.Count = int(*w.Count)
		}
		for _, c := range w.Constraints {
			r.Constraints = append(r.Constraints, c.constraint())
		}
		for _, a := range w.Affinities {
			affinity := cluster.Affinity{Constraint: Constraint{LTarget: a.LTarget, RTarget: a.RTarget, Operand: a.Operand}.constraint(), Weight: defaultWeight}
			if a.Weight != nil {
				affinity.Weight = *a.Weight
			}
			r.Affinities = append(r.Affinities, affinity)
		}
		requests = append(requests, r)
	}
	return requests, nil
}

// taskNames returns the names of the tasks with resources, in the order of the allocation's tasks. Tasks that
// the job does not have come last, by name.
func (w *AllocatedResources) taskNames(order []string) []string {
	var others []string
	for name := range w.Tasks {
		if !slices.Contains(order, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return slices.DeleteFunc(slices.Concat(order, others), func(name string) bool { return w.Tasks[name] == nil })
}

// assignedDevices reads the devices of the tasks, in the order of the allocation's tasks.
func (w *AllocatedResources) assignedDevices(order []string) *cluster.AssignedDevices {
	if w == nil {
		return nil
	}
	var all []cluster.AssignedDevice
	for _, name := range w.taskNames(order) {
		for _, d := range w.Tasks[name].Devices {
			if d != nil {
				all = append(all, cluster.AssignedDevice{
					Task: name, Kind: cluster.DeviceKind{Vendor: d.Vendor, Type: d.Type, Name: d.Name}, IDs: d.DeviceIDs,
				})
			}
		}
	}
	if all == nil {
		return nil
	}
	return &cluster.AssignedDevices{All: all}
}

// addDevices adds the devices of an allocation to its tasks.
func (w *AllocatedResources) addDevices(assigned *cluster.AssignedDevices) {
	if assigned == nil {
		return
	}
	for _, d := range assigned.All {
		if w.Tasks[d.Task] == nil {
			w.Tasks[d.Task] = &AllocatedTask{}
		}
		t := w.Tasks[d.Task]
		t.Devices = append(t.Devices, &AllocatedDevices{Vendor: d.Kind.Vendor, Type: d.Kind.Type, Name: d.Kind.Name, DeviceIDs: d.IDs})
	}
}

// DeviceGroupStats are measured values of devices of one kind.
type DeviceGroupStats struct {
	Vendor, Type, Name string
	// InstanceStats are by the id of the device.
	InstanceStats map[string]*DeviceStats
}

// DeviceStats are measured values of one device.
type DeviceStats struct {
	// Summary is the one value to show where there is place for one, or nil.
	Summary   *StatValue
	Stats     *StatObject
	Timestamp Time
}

// StatObject is a tree of measured values by name.
type StatObject struct {
	Nested     map[string]*StatObject
	Attributes map[string]*StatValue
}

// StatValue is a measured value. Nil parts are missing. A denominator is the largest possible value of its
// numerator.
type StatValue struct {
	FloatNumeratorVal   *float64 `json:",omitempty"`
	FloatDenominatorVal *float64 `json:",omitempty"`
	IntNumeratorVal     *int64   `json:",omitempty"`
	IntDenominatorVal   *int64   `json:",omitempty"`
	StringVal           *string  `json:",omitempty"`
	BoolVal             *bool    `json:",omitempty"`
	// Unit is the unit of a number, such as "MiB". Desc describes what was measured.
	Unit string `json:",omitempty"`
	Desc string `json:",omitempty"`
}

// String returns the value with its unit, such as "3/8 GiB", or a dash.
func (v *StatValue) String() string {
	if v == nil {
		return "-"
	}
	number := func(n, of string) string {
		if of != "" {
			n += "/" + of
		}
		if v.Unit != "" {
			n += " " + v.Unit
		}
		return n
	}
	switch {
	case v.BoolVal != nil:
		return strconv.FormatBool(*v.BoolVal)
	case v.StringVal != nil:
		return cmp.Or(*v.StringVal, "-")
	case v.IntNumeratorVal != nil:
		return number(intText(v.IntNumeratorVal), intText(v.IntDenominatorVal))
	case v.FloatNumeratorVal != nil:
		return number(floatText(v.FloatNumeratorVal), floatText(v.FloatDenominatorVal))
	}
	return "-"
}

func intText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func floatText(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', 2, 64)
}
