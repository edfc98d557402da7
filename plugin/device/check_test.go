//race:skip one goroutine
package device_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
)

func kind(name string) cluster.DeviceKind {
	return cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: name}
}

// group returns a group with healthy devices.
func group(name string, ids ...string) *cluster.DeviceGroup {
	g := &cluster.DeviceGroup{Kind: kind(name)}
	for _, id := range ids {
		g.Devices = append(g.Devices, cluster.Device{ID: id, Healthy: true})
	}
	return g
}

func with(g *cluster.DeviceGroup, name string, a cluster.DeviceAttribute) *cluster.DeviceGroup {
	if g.Attributes == nil {
		g.Attributes = map[string]cluster.DeviceAttribute{}
	}
	g.Attributes[name] = a
	return g
}

// describe returns the groups as "name: ids (attributes)".
func describe(groups []*cluster.DeviceGroup) []string {
	var all []string
	for _, g := range groups {
		text := g.Kind.Name + ":"
		for _, d := range g.Devices {
			text += " " + d.ID
		}
		if len(g.Attributes) > 0 {
			text += fmt.Sprintf(" (%d attributes)", len(g.Attributes))
		}
		all = append(all, text)
	}
	return all
}

// A bad part of a fingerprint costs no more than this part.
func TestCheck(t *testing.T) {
	t.Parallel()
	watt := cluster.DeviceAttribute{Kind: cluster.AttributeInt, Int: 40, Unit: "W"}
	long := strings.Repeat("x", 129)
	for _, c := range []struct {
		name     string
		groups   []*cluster.DeviceGroup
		expected []string
		problem  string
	}{
		{"no group", nil, nil, ""},
		{"a group that is nothing", []*cluster.DeviceGroup{nil}, nil, ""},
		{"groups and devices are sorted", []*cluster.DeviceGroup{group("b", "2", "1"), group("a", "3")}, []string{"a: 3", "b: 1 2"}, ""},
		{"a group without devices", []*cluster.DeviceGroup{group("a")}, []string{"a:"}, ""},
		{
			"the same id in two kinds", []*cluster.DeviceGroup{group("a", "1", "2"), group("b", "3"), group("c", "2")}, []string{"a: 1", "b: 3", "c:"},
			`the device "2" of the group "acme/lamp/a" is ignored: 2 devices have this id`,
		},
		{
			"the same id in a kind that no job can request", []*cluster.DeviceGroup{group("a", "1", "2"), group("", "2")}, []string{"a: 1"},
			`the device "2" of the group "acme/lamp/a" is ignored: 2 devices have this id`,
		},
		{"an id twice", []*cluster.DeviceGroup{group("a", "1", "2", "1"), group("b", "3")}, []string{"a: 2", "b: 3"}, `the device "1" of the group "acme/lamp/a" is ignored: 2 devices have this id`},
		{"an empty id", []*cluster.DeviceGroup{group("a", "", "2"), group("b", "1")}, []string{"a: 2", "b: 1"}, `the device "" of the group "acme/lamp/a" is ignored: its id is empty`},
		{"a long id", []*cluster.DeviceGroup{group("a", long, "2"), group("b", "1")}, []string{"a: 2", "b: 1"}, "has 129 bytes, and may have 128"},
		{"an id that a terminal obeys", []*cluster.DeviceGroup{group("a", "\x1b[2J", "2"), group("b", "1")}, []string{"a: 2", "b: 1"}, "control character"},
		{"an id that is not UTF-8", []*cluster.DeviceGroup{group("a", "\xff", "2"), group("b", "1")}, []string{"a: 2", "b: 1"}, "not UTF-8"},
		{"no vendor", []*cluster.DeviceGroup{{Kind: cluster.DeviceKind{Type: "lamp", Name: "a"}}, group("b", "1")}, []string{"b: 1"}, "its vendor is empty"},
		{"no type", []*cluster.DeviceGroup{{Kind: cluster.DeviceKind{Vendor: "acme", Name: "a"}}, group("b", "1")}, []string{"b: 1"}, "its type is empty"},
		{"no name", []*cluster.DeviceGroup{group("", "2"), group("b", "1")}, []string{"b: 1"}, "its name is empty"},
		{"a name with a slash", []*cluster.DeviceGroup{group("a/b", "1")}, []string{"a/b: 1"}, ""},
		{"a type with a slash", []*cluster.DeviceGroup{{Kind: cluster.DeviceKind{Vendor: "acme", Type: "l/a", Name: "a"}}}, nil, "no job can request it"},
		{"a bad bus id", []*cluster.DeviceGroup{{Kind: kind("a"), Devices: []cluster.Device{{ID: "1", PCIBusID: "\n"}, {ID: "2", PCIBusID: long}}}}, []string{"a: 1 2"}, `the PCI bus id of the device "1" of the group "acme/lamp/a" is ignored: it contains a control character`},
		{"one kind in two groups", []*cluster.DeviceGroup{group("a", "1"), group("b", "3"), group("a", "2")}, []string{"a: 1 2", "b: 3"}, ""},
		{"one kind in two groups with one id", []*cluster.DeviceGroup{group("a", "1", "2"), group("a", "1")}, []string{"a: 2"}, `the device "1" of the group "acme/lamp/a" is ignored`},
		{
			"one kind with different attributes", []*cluster.DeviceGroup{with(with(group("a", "1"), "power", watt), "size", watt), with(group("a", "2"), "size", watt), group("b", "3")},
			[]string{"a: 1 2 (1 attributes)", "b: 3"}, `the attribute "power" of the group "acme/lamp/a" is ignored: the group occurs more than once, with different values`,
		},
		{
			"an attribute that only the second group has", []*cluster.DeviceGroup{group("a", "1"), with(group("a", "2"), "power", watt)},
			[]string{"a: 1 2"}, `the attribute "power" of the group "acme/lamp/a" is ignored`,
		},
		{"an attribute", []*cluster.DeviceGroup{with(group("a", "1"), "power", watt)}, []string{"a: 1 (1 attributes)"}, ""},
		{"an attribute without a name", []*cluster.DeviceGroup{with(with(group("a", "1"), "", watt), "power", watt)}, []string{"a: 1 (1 attributes)"}, `the attribute "" of the group "acme/lamp/a" is ignored`},
		{"an attribute that is no number", []*cluster.DeviceGroup{with(group("a", "1"), "power", cluster.DeviceAttribute{Kind: cluster.AttributeFloat, Float: math.NaN()})}, []string{"a: 1"}, "its value is not a number"},
		{"an attribute of no type", []*cluster.DeviceGroup{with(group("a", "1"), "power", cluster.DeviceAttribute{Kind: 9})}, []string{"a: 1"}, "its value has no type"},
		{"a text with a unit", []*cluster.DeviceGroup{with(group("a", "1"), "power", cluster.DeviceAttribute{Text: "much", Unit: "W"})}, []string{"a: 1"}, "its value has a unit but is not a number"},
		{"a long unit", []*cluster.DeviceGroup{with(group("a", "1"), "power", cluster.DeviceAttribute{Kind: cluster.AttributeInt, Unit: strings.Repeat("x", 257)})}, []string{"a: 1"}, "its unit has 257 bytes"},
		{"an attribute that is a step in a path", []*cluster.DeviceGroup{with(group("a", "1"), "..", watt)}, []string{"a: 1"}, "its name is \".\" or \"..\""},
		{"an id that is a step in a path", []*cluster.DeviceGroup{group("a", ".", "2"), group("b", "1")}, []string{"a: 2", "b: 1"}, "is \".\" or \"..\""},
		{"a long attribute", []*cluster.DeviceGroup{with(group("a", "1"), "power", cluster.DeviceAttribute{Text: strings.Repeat("x", 1025)})}, []string{"a: 1"}, "has 1025 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			good, err := device.Check(c.groups)
			must.NoError(t, (&cluster.Node{Devices: good}).CheckDevices(), must.Sprint("the servers refuse the node"))
			must.Eq(t, c.expected, describe(good))
			if c.problem == "" {
				must.NoError(t, err)
			} else {
				must.ErrorContains(t, err, c.problem)
			}
		})
	}
}

// ids returns so many ids.
func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%05d", i)
	}
	return all
}

func TestCheck_bounds(t *testing.T) {
	t.Parallel()
	good, err := device.Check([]*cluster.DeviceGroup{group("a", ids(10_000)...), group("b", ids(device.MaxDevices)[10_000:]...), group("c", "1"), group("d")})
	must.ErrorContains(t, err, `1 devices of the group "acme/lamp/c" are ignored: the plugin has more than 16384 devices`)
	must.Len(t, 4, good)
	must.Len(t, 10_000, good[0].Devices)
	must.SliceEmpty(t, good[2].Devices)

	var many []*cluster.DeviceGroup
	for _, name := range ids(device.MaxGroups + 100) {
		many = append(many, group(name, name))
	}
	good, err = device.Check(many)
	must.Len(t, device.MaxGroups, good)
	must.ErrorContains(t, err, "more than 256 kinds")
	must.ErrorContains(t, err, "and 90 more problems")

	g := group("a", "1")
	for _, name := range ids(device.MaxAttributes + 1) {
		with(g, name, cluster.DeviceAttribute{Text: "x"})
	}
	good, err = device.Check([]*cluster.DeviceGroup{g})
	must.ErrorContains(t, err, `the attribute "00256"`)
	must.MapLen(t, device.MaxAttributes, good[0].Attributes)
	must.MapLen(t, device.MaxAttributes+1, g.Attributes, must.Sprint("the caller's group has changed"))

	g = group("a", "1")
	g.Devices[0].HealthDescription = strings.Repeat("é", 200)
	good, err = device.Check([]*cluster.DeviceGroup{g})
	must.NoError(t, err)
	must.Eq(t, strings.Repeat("é", 128)+"…", good[0].Devices[0].HealthDescription)
}

// What Check returns is good, and does not depend on the order of what it got.
func TestCheck_random(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var groups []*cluster.DeviceGroup
		for range rapid.IntRange(0, 6).Draw(t, "groups") {
			g := group(rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "name"),
				rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "3", "4", "5", ""}), 0, 3).Draw(t, "ids")...)
			if rapid.Bool().Draw(t, "attribute") {
				with(g, "power", cluster.DeviceAttribute{Kind: cluster.AttributeInt, Int: rapid.Int64Range(0, 1).Draw(t, "power")})
			}
			groups = append(groups, g)
		}
		good, problem := device.Check(groups)
		again, err := device.Check(good)
		must.NoError(t, err)
		must.Eq(t, good, again)
		must.NoError(t, (&cluster.Node{Devices: good}).CheckDevices())
		other, otherProblem := device.Check(rapid.Permutation(groups).Draw(t, "order"))
		must.Eq(t, good, other)
		must.Eq(t, fmt.Sprint(problem), fmt.Sprint(otherProblem))
		kinds := map[cluster.DeviceKind]bool{}
		for _, g := range good {
			must.False(t, kinds[g.Kind])
			kinds[g.Kind] = true
			must.True(t, slices.IsSortedFunc(g.Devices, func(a, b cluster.Device) int { return strings.Compare(a.ID, b.ID) }))
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add("acme", "lamp", "a", "1", "power", 1.5)
	f.Fuzz(func(t *testing.T, vendor, kind, name, id, attribute string, value float64) {
		g := &cluster.DeviceGroup{
			Kind:       cluster.DeviceKind{Vendor: vendor, Type: kind, Name: name},
			Devices:    []cluster.Device{{ID: id, PCIBusID: attribute, HealthDescription: name}},
			Attributes: map[string]cluster.DeviceAttribute{attribute: {Kind: cluster.AttributeFloat, Float: value, Unit: id}},
		}
		good, _ := device.Check([]*cluster.DeviceGroup{g})
		_, err := device.Check(good)
		must.NoError(t, err)
		must.NoError(t, (&cluster.Node{Devices: good}).CheckDevices())
	})
}
