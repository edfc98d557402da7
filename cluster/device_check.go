package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Bounds on the devices of a node.
const (
	// MaxDeviceKinds bounds the kinds, and MaxDevices the devices of all kinds together.
	MaxDeviceKinds = 256
	MaxDevices     = 16_384
	// MaxDeviceAttributes bounds the attributes of a kind.
	MaxDeviceAttributes = 256
	// MaxDeviceBytes bounds all kinds, ids, attributes and descriptions of a node's devices together, as they
	// are in the JSON of a registration: what the check accepts, the route of the servers holds.
	MaxDeviceBytes = 3 << 20
	// jsonOfGroup, jsonOfDevice and jsonOfAttribute are what the JSON has beside the texts.
	jsonOfGroup, jsonOfDevice, jsonOfAttribute = 80, 80, 64
)

// Bounds on the requests for devices.
const (
	// MaxDeviceRequests bounds the requests of a group.
	MaxDeviceRequests = 64
	// MaxDeviceConstraints bounds the constraints and affinities of all requests of a group: the scheduler
	// judges each one on each device.
	MaxDeviceConstraints = 256
	// MaxDeviceCount bounds the count of one request.
	MaxDeviceCount = 1024
	// MaxAffinities bounds the affinities of one request.
	MaxAffinities = 100
	// MaxAffinityWeight bounds a weight and its negative.
	MaxAffinityWeight = 100
)

// canonicalizeDevices sorts the devices of the node and makes empty lists and maps nil. The groups stay
// the caller's: a node that shares them with others is copied first.
func (n *Node) canonicalizeDevices() {
	n.Devices = orNil(n.Devices)
	for _, g := range n.Devices {
		if g != nil {
			g.Attributes = orNilMap(g.Attributes)
			slices.SortStableFunc(g.Devices, func(a, b Device) int { return cmp.Compare(a.ID, b.ID) })
		}
	}
	slices.SortStableFunc(n.Devices, func(a, b *DeviceGroup) int { return orEmpty(a).Kind.Order(orEmpty(b).Kind) })
}

// orEmpty returns an empty value for nil.
func orEmpty[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// CheckDevices returns what is wrong with the node's devices, or nil. Their order does not matter.
func (n *Node) CheckDevices() error {
	if len(n.Devices) == 0 {
		return nil
	}
	if n.Resources.GPU != 0 {
		return errors.New("a node has either thousandths of GPUs or devices: leave one of them out")
	}
	sum := deviceSum{}
	for i, g := range n.Devices {
		if g == nil {
			return fmt.Errorf("devices %d are missing", i)
		}
		if err := sum.add(g); err != nil {
			return err
		}
	}
	return nil
}

// UsableDevices returns the groups with which a node may be registered, in their order, and why others are
// left out, or nil. One bad group does not cost the node the others. If the texts of the devices are too
// long, the descriptions of health go first. The groups are the caller's, or copies.
func UsableDevices(groups []*DeviceGroup) (usable []*DeviceGroup, err error) {
	sum := deviceSum{}
	var errs []error
	for _, g := range groups {
		if g == nil {
			continue
		}
		err := sum.add(g)
		if errors.Is(err, errDeviceBytes) {
			g = g.Copy()
			for i := range g.Devices {
				g.Devices[i].HealthDescription = ""
			}
			err = sum.add(g)
		}
		if err == nil {
			usable = append(usable, g)
		} else if len(errs) < maxReasons {
			errs = append(errs, err)
		}
	}
	return usable, errors.Join(errs...)
}

// errDeviceBytes means that the texts of a node's devices are too long together.
var errDeviceBytes = fmt.Errorf("all kinds, ids, attributes and descriptions have at most %d bytes", MaxDeviceBytes)

// deviceSum are groups of one node. The zero value is none.
type deviceSum struct {
	kinds        map[DeviceKind]bool
	count, bytes int
}

// add adds a group, or returns why the node cannot have it beside the others, and changes nothing.
func (s *deviceSum) add(g *DeviceGroup) error {
	switch err := g.Kind.check(); {
	case err != nil:
		return fmt.Errorf("devices %q: %w", CutText(g.Kind.String()), err)
	case s.kinds[g.Kind]:
		return fmt.Errorf("devices %s are listed twice", g.Kind)
	case len(s.kinds) == MaxDeviceKinds:
		return fmt.Errorf("devices %s: a node has at most %d kinds of devices", g.Kind, MaxDeviceKinds)
	}
	size, err := g.check()
	switch {
	case err != nil:
		return fmt.Errorf("devices %s: %w", g.Kind, err)
	case s.count+len(g.Devices) > MaxDevices:
		return fmt.Errorf("devices %s: a node has at most %d devices but found %d", g.Kind, MaxDevices, s.count+len(g.Devices))
	case s.bytes+size > MaxDeviceBytes:
		return fmt.Errorf("devices %s: %w but found %d", g.Kind, errDeviceBytes, s.bytes+size)
	}
	if s.kinds == nil {
		s.kinds = make(map[DeviceKind]bool)
	}
	s.kinds[g.Kind] = true
	s.count += len(g.Devices)
	s.bytes += size
	return nil
}

func (k DeviceKind) check() error {
	for _, part := range []struct{ name, text string }{{"vendor", k.Vendor}, {"type", k.Type}, {"name", k.Name}} {
		if err := CheckID(part.text); err != nil {
			return fmt.Errorf("invalid %s: %w", part.name, err)
		}
	}
	if strings.Contains(k.Vendor, "/") || strings.Contains(k.Type, "/") {
		return fmt.Errorf("vendor and type of %s contain no slash", k)
	}
	return nil
}

// jsonBytes is the size of a text in JSON, at most.
func jsonBytes(text string) (size int) {
	for _, b := range []byte(text) {
		switch {
		case b == '"' || b == '\\':
			size += 2
		case b < ' ' || b == '<' || b == '>' || b == '&':
			size += 6
		default:
			size++
		}
	}
	return size
}

// check returns the size of the group in JSON, in bytes.
func (g *DeviceGroup) check() (size int, err error) {
	if len(g.Attributes) > MaxDeviceAttributes {
		return 0, fmt.Errorf("they have at most %d attributes but found %d", MaxDeviceAttributes, len(g.Attributes))
	}
	if len(g.Devices) > MaxDevices {
		return 0, fmt.Errorf("a node has at most %d devices but found %d", MaxDevices, len(g.Devices))
	}
	size = jsonOfGroup + jsonBytes(g.Kind.Vendor) + jsonBytes(g.Kind.Type) + jsonBytes(g.Kind.Name)
	for _, name := range slices.Sorted(maps.Keys(g.Attributes)) {
		a := g.Attributes[name]
		if err := cmp.Or(CheckID(name), a.check()); err != nil {
			return 0, fmt.Errorf("invalid attribute %q: %w", name, err)
		}
		size += jsonOfAttribute + jsonBytes(name) + jsonBytes(a.Text) + jsonBytes(a.Unit)
	}
	ids := make(map[string]bool, len(g.Devices))
	for i, d := range g.Devices {
		if err := CheckID(d.ID); err != nil {
			return 0, fmt.Errorf("device %d: invalid id: %w", i, err)
		}
		if ids[d.ID] {
			return 0, fmt.Errorf("device %q is listed twice", d.ID)
		}
		ids[d.ID] = true
		size += jsonOfDevice + jsonBytes(d.ID) + jsonBytes(d.HealthDescription) + jsonBytes(d.PCIBusID)
	}
	return size, nil
}

func (a DeviceAttribute) check() error {
	plain := DeviceAttribute{Kind: a.Kind}
	switch a.Kind {
	case AttributeText:
		plain.Text = a.Text
	case AttributeInt:
		plain.Int, plain.Unit = a.Int, a.Unit
	case AttributeFloat:
		if math.IsNaN(a.Float) || math.IsInf(a.Float, 0) {
			return errors.New("it is not a finite number")
		}
		plain.Float, plain.Unit = a.Float, a.Unit
	case AttributeBool:
		plain.Bool = a.Bool
	default:
		return fmt.Errorf("its kind %d is unknown", a.Kind)
	}
	switch {
	case a != plain:
		return errors.New("it has more than one value, or a unit without a number")
	case len(a.Unit) > MaxIDBytes:
		return fmt.Errorf("its unit is longer than %d bytes", MaxIDBytes)
	}
	return nil
}

// validateDevices checks the requests of a task.
func (t *Task) validateDevices() error {
	if len(t.Devices) > 0 && t.Resources.GPU != 0 {
		return errors.New("A task asks for thousandths of GPUs or for devices, not for both")
	}
	var errs []error
	for i := range t.Devices {
		if len(errs) >= maxReasons {
			errs = append(errs, errTooManyReasons)
			break
		}
		if err := t.Devices[i].validate(); err != nil {
			errs = append(errs, withPlace(named("Device", CutText(t.Devices[i].Name), i), err))
		}
	}
	return errors.Join(errs...)
}

func (r *DeviceRequest) validate() error {
	parts := strings.SplitN(r.Name, "/", 3)
	for _, part := range parts {
		if err := CheckID(part); err != nil {
			return fmt.Errorf(`the name must be "type", "vendor/type" or "vendor/type/name": %w`, err)
		}
	}
	if r.Count < 1 || r.Count > MaxDeviceCount {
		return fmt.Errorf("Count must be between [1, %d] but found %d", MaxDeviceCount, r.Count)
	}
	if len(r.Constraints) > MaxConstraints {
		return fmt.Errorf("There are at most %d constraints but found %d", MaxConstraints, len(r.Constraints))
	}
	if len(r.Affinities) > MaxAffinities {
		return fmt.Errorf("There are at most %d affinities but found %d", MaxAffinities, len(r.Affinities))
	}
	var errs []error
	for _, c := range r.Constraints {
		errs = append(errs, c.validate(checkDeviceTarget))
	}
	for _, a := range r.Affinities {
		errs = append(errs, a.Constraint.validate(checkDeviceTarget))
		if a.Weight == 0 || a.Weight < -MaxAffinityWeight || a.Weight > MaxAffinityWeight {
			errs = append(errs, fmt.Errorf("the weight of affinity %q must be between [-%d, %d] and not 0 but found %d",
				a.Constraint, MaxAffinityWeight, MaxAffinityWeight, a.Weight))
		}
	}
	errs = slices.DeleteFunc(errs, isNoError)
	return errors.Join(errs[:min(len(errs), maxReasons)]...)
}

// TargetDeviceIDs is the target that names the id of a device.
const TargetDeviceIDs = "${device.ids}"

// checkDeviceTarget refuses the name of a fact that no device has.
func checkDeviceTarget(text string) error {
	name, is := Target(text)
	if !is {
		return nil
	}
	if attribute, is := strings.CutPrefix(name, "device.attr."); is && attribute != "" {
		return nil
	}
	switch name {
	case "device.ids", "device.vendor", "device.type", "device.model":
		return nil
	}
	return fmt.Errorf("the target %q is not supported", text)
}

// OfOneDevice reports whether the constraint speaks of each device by itself.
func (c Constraint) OfOneDevice() bool {
	return c.LTarget == TargetDeviceIDs || c.RTarget == TargetDeviceIDs
}

// deviceBytes is what the requests add to [MaxJobTextBytes].
func (t *Task) deviceBytes() (size int) {
	for _, r := range t.Devices {
		size += len(r.Name) + constraintBytes(r.Constraints)
		for _, a := range r.Affinities {
			size += len(a.Constraint.LTarget) + len(a.Constraint.RTarget) + len(a.Constraint.Operand)
		}
	}
	return size
}

// deviceRegexps counts the regular expressions of the requests.
func (t *Task) deviceRegexps() (count int) {
	for _, r := range t.Devices {
		count += regexpsOf(r.Constraints)
		for _, a := range r.Affinities {
			if a.Constraint.Operand == OperandRegexp {
				count++
			}
		}
	}
	return count
}

// checkDevices checks what the tasks of the group request together.
func (g *TaskGroup) checkDevices() error {
	requests, constraints, gpu := 0, 0, false
	for _, t := range g.Tasks {
		if t != nil {
			requests += len(t.Devices)
			gpu = gpu || t.Resources.GPU != 0
			for _, r := range t.Devices {
				constraints += len(r.Constraints) + len(r.Affinities)
			}
		}
	}
	switch {
	case requests > MaxDeviceRequests:
		return fmt.Errorf("A group has at most %d requests for devices but found %d", MaxDeviceRequests, requests)
	case constraints > MaxDeviceConstraints:
		return fmt.Errorf("A group has at most %d constraints and affinities of devices but found %d", MaxDeviceConstraints, constraints)
	case requests > 0 && gpu:
		return errors.New("A group asks for thousandths of GPUs or for devices, not for both")
	}
	return nil
}
