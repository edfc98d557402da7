package scenario

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Devices are the devices of one kind on a node. They are healthy at the beginning.
type Devices struct {
	Kind  cluster.DeviceKind
	Count int
	// Attributes are facts about each of them, in the order of the file.
	Attributes []DeviceAttribute
}

// DeviceAttribute is a whole number with a name, and perhaps with a unit.
type DeviceAttribute struct {
	Name  string
	Value int64
	Unit  string
}

// DeviceRequest is a request of the main task of a group for devices of its node.
type DeviceRequest struct {
	// Name is "type" or "vendor/type/name".
	Name        string
	Count       int
	Constraints []DeviceConstraint
}

// DeviceConstraint compares an attribute of a device with a value.
type DeviceConstraint struct {
	DeviceAttribute
	// Operand is one of =, !=, <, <=, > and >=.
	Operand string
}

// The vendor and the name of a kind that is written as its type only.
const (
	DefaultVendor     = "acme"
	DefaultDeviceName = "one"
)

// errTwoGPUs: a node or a group has thousandths of a GPU beside devices.
var errTwoGPUs = errors.New("gpu and devices exclude each other")

// MaxDevices bounds the devices of a kind and of a request.
const MaxDevices = 64

// ID returns the id of the device with the number, which counts from 0.
func (d *Devices) ID(number int) string {
	if d.Kind.Name == DefaultDeviceName {
		return fmt.Sprint(d.Kind.Type, number)
	}
	return fmt.Sprint(d.Kind.Name, "-", number)
}

func (d Devices) text() string {
	text := fmt.Sprintf("%s:%d", kindText(d.Kind), d.Count)
	for _, a := range d.Attributes {
		text += ":" + a.Name + "=" + a.text()
	}
	return text
}

// parseDevices reads one of "gpu:4:memory=16GiB,acme/fpga/x1:2".
func parseDevices(before []Devices, text string) (d Devices, err error) {
	words := strings.Split(text, ":")
	if d.Kind, err = parseKind(words[0]); err != nil {
		return d, err
	}
	d.Count, words, err = deviceCount(text, words)
	for _, word := range words {
		a, operand, failed := parseAttribute(word)
		if failed == nil && operand != "=" {
			failed = fmt.Errorf("%q: an attribute is name=number", word)
		}
		if slices.ContainsFunc(d.Attributes, func(o DeviceAttribute) bool { return o.Name == a.Name }) {
			failed = fmt.Errorf("%q: the attribute occurs twice", word)
		}
		err = errors.Join(err, failed)
		d.Attributes = append(d.Attributes, a)
	}
	if slices.ContainsFunc(before, func(o Devices) bool { return o.Kind.Type == d.Kind.Type && o.Kind.Name == d.Kind.Name }) {
		err = errors.Join(err, fmt.Errorf("%q: another kind has this type and this name", text))
	}
	return d, err
}

// deviceCount returns the count, which is the second word, and the words after it.
func deviceCount(text string, words []string) (int, []string, error) {
	if len(words) < 2 {
		return 0, nil, fmt.Errorf("%q: write a kind and a count: gpu:4", text)
	}
	n, err := parseNumber(words[1], 1, MaxDevices)
	return int(n), words[2:], err
}

// parseKind reads "gpu" or "acme/gpu/one".
func parseKind(text string) (cluster.DeviceKind, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 1 {
		parts = []string{DefaultVendor, text, DefaultDeviceName}
	}
	if len(parts) != 3 {
		return cluster.DeviceKind{}, fmt.Errorf("%q is not a kind of devices: write type or vendor/type/name", text)
	}
	kind := cluster.DeviceKind{Vendor: parts[0], Type: parts[1], Name: parts[2]}
	return kind, errors.Join(checkName(kind.Vendor), checkName(kind.Type), checkName(kind.Name))
}

func kindText(k cluster.DeviceKind) string {
	if k.Vendor == DefaultVendor && k.Name == DefaultDeviceName {
		return k.Type
	}
	return k.String()
}

// parseAttribute reads "memory=16GiB", with any operand.
func parseAttribute(text string) (a DeviceAttribute, operand string, err error) {
	parts := regexp.MustCompile(`^([\w-]+)(!=|<=|>=|=|<|>)(\d*)(.*)$`).FindStringSubmatch(text)
	if parts == nil {
		return a, "", fmt.Errorf("%q: write a name, one of = != < <= > >=, and a number", text)
	}
	digits := parts[3]
	if a.Name, a.Unit = parts[1], parts[4]; digits == "" {
		digits, a.Unit = a.Unit, ""
	}
	if a.Unit != "" {
		err = checkName(a.Unit)
	}
	number, failed := parseNumber(digits, 0, math.MaxInt32)
	a.Value = number
	return a, parts[2], errors.Join(checkName(a.Name), err, failed)
}

func (a DeviceAttribute) text() string { return fmt.Sprint(a.Value) + a.Unit }

func (r DeviceRequest) text() string {
	text := fmt.Sprintf("%s:%d", r.Name, r.Count)
	for _, c := range r.Constraints {
		text += ":" + c.Name + c.Operand + c.text()
	}
	return text
}

// parseRequest reads a request: "gpu:1:memory>=8GiB".
func parseRequest(_ []DeviceRequest, text string) (r DeviceRequest, err error) {
	words := strings.Split(text, ":")
	kind, err := parseKind(words[0])
	if err != nil {
		return r, err
	}
	if r.Name = kind.String(); !strings.Contains(words[0], "/") {
		r.Name = kind.Type
	}
	r.Count, words, err = deviceCount(text, words)
	for _, word := range words {
		var c DeviceConstraint
		var failed error
		c.DeviceAttribute, c.Operand, failed = parseAttribute(word)
		err = errors.Join(err, failed)
		r.Constraints = append(r.Constraints, c)
	}
	return r, err
}

// check returns an error if a group is wrong as a whole.
func (g *Group) check() error {
	if g.GPUMilli > 0 && len(g.Devices) > 0 {
		return errTwoGPUs
	}
	if g.Check != nil && !g.Service {
		return errNoService
	}
	return nil
}
