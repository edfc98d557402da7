package device

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Limits of a fingerprint. Texts are counted in bytes.
const (
	// MaxDevices is the largest number of devices of a plugin. The servers have the same limit for
	// a node.
	MaxDevices = cluster.MaxDevices
	// MaxGroups is the largest number of kinds of a plugin. The servers have the same limit for a
	// node.
	MaxGroups = cluster.MaxDeviceKinds
	// MaxID is the longest id and the longest PCI bus id.
	MaxID = 128
	// MaxName is the longest part of a kind.
	MaxName = 128
	// MaxDescription is the longest health description of a device. Longer texts are cut.
	MaxDescription = 256
	// MaxAttributes is the largest number of attributes of a group.
	MaxAttributes = cluster.MaxDeviceAttributes
	// MaxAttributeName is the longest name of an attribute.
	MaxAttributeName = 200
	// MaxAttributeText is the longest text of an attribute.
	MaxAttributeText = 1024
	// MaxUnit is the longest unit of an attribute.
	MaxUnit = cluster.MaxIDBytes
)

// maxProblems is the largest number of problems in an error of [Check].
const maxProblems = 10

// Check returns the valid groups of a fingerprint, sorted by kind, with their devices sorted by id.
// The error says for operators what Check ignores and why. The groups are valid even with an error.
// They are copies.
//
// Check ignores a whole group if its kind is not complete, if a device has no id or the id of
// another device, or if it exceeds a limit. The other groups stay. Groups of one kind with equal
// attributes are merged. If their attributes differ, Check ignores all of them, because it cannot
// know which attributes are true. It ignores an attribute that exceeds a limit, and keeps the
// group.
func Check(groups []*cluster.DeviceGroup) ([]*cluster.DeviceGroup, error) {
	var c checker
	var good []*cluster.DeviceGroup
	devices := 0
	for _, same := range byKind(groups) {
		g, err := c.join(same)
		if err == nil {
			err = checkGroup(g)
		}
		switch {
		case err != nil:
		case len(good) == MaxGroups:
			err = fmt.Errorf("the plugin has more than %d kinds of devices", MaxGroups)
		case devices+len(g.Devices) > MaxDevices:
			err = fmt.Errorf("with its %d devices the plugin has more than %d devices", len(g.Devices), MaxDevices)
		}
		if err != nil {
			c.refuse(fmt.Errorf("the group %s is ignored: %w", nameOf(same[0].Kind), err))
			continue
		}
		devices += len(g.Devices)
		good = append(good, g)
	}
	return c.distinct(good), c.err()
}

// distinct removes groups that have an id in common: Reserve gets only ids, so the plugin could not
// distinguish the devices.
func (c *checker) distinct(groups []*cluster.DeviceGroup) []*cluster.DeviceGroup {
	owner := make(map[string]*cluster.DeviceGroup)
	shared := make(map[*cluster.DeviceGroup]string)
	for _, g := range groups {
		for _, d := range g.Devices {
			if other := owner[d.ID]; other != nil {
				shared[g], shared[other] = d.ID, d.ID
				continue
			}
			owner[d.ID] = g
		}
	}
	var kept []*cluster.DeviceGroup
	for _, g := range groups {
		if id, is := shared[g]; is {
			c.refuse(fmt.Errorf("the group %s is ignored: another group has a device with the same id %q", nameOf(g.Kind), id))
			continue
		}
		kept = append(kept, g)
	}
	return kept
}

// byKind returns copies of the groups, grouped and sorted by kind.
func byKind(groups []*cluster.DeviceGroup) [][]*cluster.DeviceGroup {
	sorted := make([]*cluster.DeviceGroup, 0, len(groups))
	for _, g := range groups {
		if g != nil {
			sorted = append(sorted, g.Copy())
		}
	}
	slices.SortStableFunc(sorted, func(a, b *cluster.DeviceGroup) int { return compareKinds(a.Kind, b.Kind) })
	var all [][]*cluster.DeviceGroup
	for _, g := range sorted {
		if last := len(all) - 1; last >= 0 && all[last][0].Kind == g.Kind {
			all[last] = append(all[last], g)
			continue
		}
		all = append(all, []*cluster.DeviceGroup{g})
	}
	return all
}

func compareKinds(a, b cluster.DeviceKind) int {
	return cmp.Or(cmp.Compare(a.Vendor, b.Vendor), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
}

// checker collects the problems of a fingerprint.
type checker struct {
	problems []error
	more     int
}

func (c *checker) refuse(err error) {
	if len(c.problems) == maxProblems {
		c.more++
		return
	}
	c.problems = append(c.problems, err)
}

// err returns the problems as one error, or nil.
func (c *checker) err() error {
	if c.more > 0 {
		c.problems = append(c.problems, fmt.Errorf("and %d more problems", c.more))
	}
	return errors.Join(c.problems...)
}

// join merges groups of one kind into one group, with the valid attributes.
func (c *checker) join(same []*cluster.DeviceGroup) (*cluster.DeviceGroup, error) {
	whole := same[0]
	for _, g := range same[1:] {
		if !maps.Equal(whole.Attributes, g.Attributes) {
			return nil, errors.New("the group occurs twice, with different attributes")
		}
		whole.Devices = append(whole.Devices, g.Devices...)
	}
	slices.SortFunc(whole.Devices, func(a, b cluster.Device) int { return cmp.Compare(a.ID, b.ID) })
	for i := range whole.Devices {
		d := &whole.Devices[i]
		d.HealthDescription = cut(d.HealthDescription, MaxDescription)
	}
	kept := 0
	for _, name := range slices.Sorted(maps.Keys(whole.Attributes)) {
		err := checkAttribute(name, whole.Attributes[name])
		if err == nil && kept == MaxAttributes {
			err = fmt.Errorf("the group has more than %d attributes", MaxAttributes)
		}
		if err == nil {
			kept++
			continue
		}
		c.refuse(fmt.Errorf("the attribute %q of the group %s is ignored: %w", cut(name, MaxAttributeName), nameOf(whole.Kind), err))
		delete(whole.Attributes, name)
	}
	return whole, nil
}

// nameOf is a kind for an error message.
func nameOf(k cluster.DeviceKind) string { return fmt.Sprintf("%q", cut(k.String(), 3*MaxName)) }

// checkGroup says why a group is not valid, or returns nil. Its devices are sorted by id.
func checkGroup(g *cluster.DeviceGroup) error {
	for _, part := range []struct{ what, text, not string }{
		{"vendor", g.Kind.Vendor, "/"}, {"type", g.Kind.Type, "/"}, {"name", g.Kind.Name, ""},
	} {
		if err := checkText(part.text, MaxName); err != nil {
			return fmt.Errorf("its %s %w", part.what, err)
		}
		if part.not != "" && strings.Contains(part.text, part.not) {
			return fmt.Errorf("its %s contains %q, so no job can request it", part.what, part.not)
		}
	}
	for i, d := range g.Devices {
		if err := checkText(d.ID, MaxID); err != nil {
			return fmt.Errorf("the id %q of a device %w", cut(d.ID, MaxID), err)
		}
		if i > 0 && d.ID == g.Devices[i-1].ID {
			return fmt.Errorf("the id %q occurs twice", d.ID)
		}
		if d.PCIBusID != "" {
			if err := checkText(d.PCIBusID, MaxID); err != nil {
				return fmt.Errorf("the PCI bus id of the device %q %w", d.ID, err)
			}
		}
	}
	return nil
}

// checkAttribute says why an attribute is not valid, or returns nil.
func checkAttribute(name string, a cluster.DeviceAttribute) error {
	if err := checkText(name, MaxAttributeName); err != nil {
		return fmt.Errorf("its name %w", err)
	}
	switch {
	case a.Kind > cluster.AttributeBool:
		return errors.New("its value has no type")
	case math.IsNaN(a.Float), math.IsInf(a.Float, 0):
		return errors.New("its value is not a number")
	case len(a.Text) > MaxAttributeText:
		return fmt.Errorf("its value has %d bytes, and may have %d", len(a.Text), MaxAttributeText)
	case len(a.Unit) > MaxUnit:
		return fmt.Errorf("its unit has %d bytes, and may have %d", len(a.Unit), MaxUnit)
	case a.Unit != "" && a.Kind != cluster.AttributeInt && a.Kind != cluster.AttributeFloat:
		return errors.New("its value has a unit but is not a number")
	}
	return nil
}

// checkText says why a text is not valid as a name, or returns nil.
func checkText(text string, most int) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > most:
		return fmt.Errorf("has %d bytes, and may have %d", len(text), most)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("contains a control character, or is not UTF-8")
	case text == ".", text == "..":
		return errors.New("is \".\" or \"..\"")
	}
	return nil
}

// cut returns the start of a text, without incomplete characters.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
