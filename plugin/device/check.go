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

// Check returns the valid devices of a fingerprint, in groups that are sorted by kind, with their
// devices sorted by id. The error describes for operators what Check ignores and why. The groups are
// valid even with an error. They are copies.
//
// A bad part of a fingerprint costs no more than this part. Check ignores an attribute or a place
// that is not valid, and keeps the device. It ignores a device without a valid id. If two devices
// have the same id, it ignores both: Reserve gets only ids, so the plugin could not distinguish
// them. It ignores a whole group only if its kind is not valid, because no job could request it.
// Groups of one kind are merged. They keep the attributes that are equal in all of them.
func Check(groups []*cluster.DeviceGroup) ([]*cluster.DeviceGroup, error) {
	var c checker
	var good []*cluster.DeviceGroup
	for _, same := range byKind(groups) {
		err := checkKind(same[0].Kind)
		if err == nil && len(good) == MaxGroups {
			err = fmt.Errorf("the plugin has more than %d kinds of devices", MaxGroups)
		}
		if err != nil {
			c.refuse(fmt.Errorf("the group %s is ignored: %w", nameOf(same[0].Kind), err))
			continue
		}
		good = append(good, c.join(same))
	}
	c.distinct(groups, good)
	c.limit(good)
	return good, c.err()
}

// distinct removes devices from the good groups whose ids occur more than once in all groups.
func (c *checker) distinct(all, good []*cluster.DeviceGroup) {
	count := make(map[string]int)
	for _, g := range all {
		if g == nil {
			continue
		}
		for _, d := range g.Devices {
			count[d.ID]++
		}
	}
	for _, g := range good {
		g.Devices = slices.DeleteFunc(g.Devices, func(d cluster.Device) bool {
			if count[d.ID] > 1 {
				c.refuseDevice(g, d, fmt.Errorf("%d devices have this id", count[d.ID]))
			}
			return count[d.ID] > 1
		})
	}
}

// limit removes the devices above the largest number of devices.
func (c *checker) limit(groups []*cluster.DeviceGroup) {
	room := MaxDevices
	for _, g := range groups {
		if more := len(g.Devices) - room; more > 0 {
			c.refuse(fmt.Errorf("%d devices of the group %s are ignored: the plugin has more than %d devices", more, nameOf(g.Kind), MaxDevices))
			g.Devices = g.Devices[:room]
		}
		room -= len(g.Devices)
	}
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

// refuseDevice notes that a device is ignored.
func (c *checker) refuseDevice(g *cluster.DeviceGroup, d cluster.Device, why error) {
	c.refuse(fmt.Errorf("the device %q of the group %s is ignored: %w", cut(d.ID, MaxID), nameOf(g.Kind), why))
}

// join merges groups of one kind into one group, with the valid attributes and the devices that
// have valid ids.
func (c *checker) join(same []*cluster.DeviceGroup) *cluster.DeviceGroup {
	whole := same[0]
	whole.Attributes = c.attributes(same)
	for _, g := range same[1:] {
		whole.Devices = append(whole.Devices, g.Devices...)
	}
	slices.SortFunc(whole.Devices, func(a, b cluster.Device) int { return cmp.Compare(a.ID, b.ID) })
	whole.Devices = slices.DeleteFunc(whole.Devices, func(d cluster.Device) bool {
		err := checkText(d.ID, MaxID)
		if err != nil {
			c.refuseDevice(whole, d, fmt.Errorf("its id %w", err))
		}
		return err != nil
	})
	for i := range whole.Devices {
		d := &whole.Devices[i]
		d.HealthDescription = cut(d.HealthDescription, MaxDescription)
		if err := checkText(d.PCIBusID, MaxID); d.PCIBusID != "" && err != nil {
			c.refuse(fmt.Errorf("the PCI bus id of the device %q of the group %s is ignored: it %w", d.ID, nameOf(whole.Kind), err))
			d.PCIBusID = ""
		}
	}
	return whole
}

// attributes returns the attributes that are valid and equal in all groups, or nil. Where the groups
// differ, the client cannot determine which value is true.
func (c *checker) attributes(same []*cluster.DeviceGroup) map[string]cluster.DeviceAttribute {
	all := make(map[string]cluster.DeviceAttribute)
	for _, g := range same {
		maps.Copy(all, g.Attributes)
	}
	kept := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		err := checkAttribute(name, all[name])
		switch {
		case err != nil:
		case slices.ContainsFunc(same, func(g *cluster.DeviceGroup) bool { return !hasEqual(g.Attributes, name, all[name]) }):
			err = errors.New("the group occurs more than once, with different values")
		case kept == MaxAttributes:
			err = fmt.Errorf("the group has more than %d attributes", MaxAttributes)
		}
		if err == nil {
			kept++
			continue
		}
		c.refuse(fmt.Errorf("the attribute %q of the group %s is ignored: %w", cut(name, MaxAttributeName), nameOf(same[0].Kind), err))
		delete(all, name)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// hasEqual reports whether the attributes contain this one.
func hasEqual(attributes map[string]cluster.DeviceAttribute, name string, a cluster.DeviceAttribute) bool {
	other, has := attributes[name]
	return has && other == a
}

// nameOf is a kind for an error message.
func nameOf(k cluster.DeviceKind) string { return fmt.Sprintf("%q", cut(k.String(), 3*MaxName)) }

// checkKind states why no job can request a kind, or returns nil.
func checkKind(k cluster.DeviceKind) error {
	for _, part := range []struct{ name, text, not string }{
		{"vendor", k.Vendor, "/"}, {"type", k.Type, "/"}, {"name", k.Name, ""},
	} {
		if err := checkText(part.text, MaxName); err != nil {
			return fmt.Errorf("its %s %w", part.name, err)
		}
		if part.not != "" && strings.Contains(part.text, part.not) {
			return fmt.Errorf("its %s contains %q, so no job can request it", part.name, part.not)
		}
	}
	return nil
}

// checkAttribute states why an attribute is not valid, or returns nil.
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

// checkText states why a text is not valid as a name, or returns nil.
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
