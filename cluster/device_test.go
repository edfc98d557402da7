package cluster_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// gpuNode has two GPUs of one kind and an FPGA.
func gpuNode() *cluster.Node {
	return &cluster.Node{ID: "n", Devices: []*cluster.DeviceGroup{
		{
			Kind:       cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"},
			Attributes: map[string]cluster.DeviceAttribute{"memory": {Kind: cluster.AttributeInt, Int: 11441, Unit: "MiB"}},
			Devices:    []cluster.Device{{ID: "b", Healthy: true, PCIBusID: "0:1"}, {ID: "a"}},
		},
		{Kind: cluster.DeviceKind{Vendor: "intel", Type: "fpga", Name: "F100"}, Devices: []cluster.Device{{ID: "a", Healthy: true}}},
	}}
}

func many(count int) (devices []cluster.Device) {
	for i := range count {
		devices = append(devices, cluster.Device{ID: fmt.Sprintf("GPU-%036d", i), Healthy: true})
	}
	return devices
}

// One bad group costs the node no other, and long descriptions go before devices do.
func TestUsableDevices(t *testing.T) {
	t.Parallel()
	describe := func(groups []*cluster.DeviceGroup) (words []string) {
		for _, g := range groups {
			words = append(words, fmt.Sprint(g.Kind, " ", len(g.Devices), " ", len(g.Devices[0].HealthDescription)))
		}
		return words
	}
	named := func(name string, count, description int) *cluster.DeviceGroup {
		g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: name}, Devices: many(count)}
		for i := range g.Devices {
			g.Devices[i].HealthDescription = strings.Repeat("x", description)
		}
		return g
	}
	whole := []*cluster.DeviceGroup{named("a", 2, 3), nil, named("a", 1, 0), named("", 1, 0), named("b", cluster.MaxDevices, 0), named("c", 1, 0)}
	usable, err := cluster.UsableDevices(whole)
	must.Eq(t, []string{"nvidia/gpu/a 2 3", "nvidia/gpu/c 1 0"}, describe(usable))
	must.EqError(t, err, "devices nvidia/gpu/a are listed twice\ndevices \"nvidia/gpu/\": invalid name: it is empty\n"+
		"devices nvidia/gpu/b: a node has at most 16384 devices but found 16386")

	long := []*cluster.DeviceGroup{named("a", 10_000, 256), named("b", 1, 3)}
	usable, err = cluster.UsableDevices(long)
	must.NoError(t, err)
	must.Eq(t, []string{"nvidia/gpu/a 10000 0", "nvidia/gpu/b 1 3"}, describe(usable))
	must.Len(t, 256, []byte(long[0].Devices[0].HealthDescription))
	must.NoError(t, (&cluster.Node{Devices: usable}).CheckDevices())

	usable, err = cluster.UsableDevices(nil)
	must.NoError(t, err)
	must.SliceEmpty(t, usable)
}

func TestNode_CheckDevices(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(n *cluster.Node, g *cluster.DeviceGroup)
		want string
	}{
		"as it should be": {func(*cluster.Node, *cluster.DeviceGroup) {}, ""},
		"ten thousand":    {func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Devices = many(10_000) }, ""},
		"none":            {func(n *cluster.Node, _ *cluster.DeviceGroup) { n.Devices = nil }, ""},
		"a kind without devices": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Devices = nil }, "",
		},
		"too many": {func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Devices = many(cluster.MaxDevices) }, "devices intel/fpga/F100: a node has at most 16384 devices but found 16385"},
		"too many kinds": {
			func(n *cluster.Node, g *cluster.DeviceGroup) {
				for i := range cluster.MaxDeviceKinds - 1 {
					more := g.Copy()
					more.Kind.Name = fmt.Sprint(i)
					n.Devices = append(n.Devices, more)
				}
			}, "devices nvidia/gpu/254: a node has at most 256 kinds of devices",
		},
		"a missing group": {func(n *cluster.Node, _ *cluster.DeviceGroup) { n.Devices[0] = nil }, "devices 0 are missing"},
		"an id twice": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Devices[1].ID = "b" }, `devices nvidia/gpu/A100: device "b" is listed twice`,
		},
		"an empty id": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Devices[1].ID = "" }, "devices nvidia/gpu/A100: device 1: invalid id: it is empty",
		},
		"a kind twice": {
			func(n *cluster.Node, g *cluster.DeviceGroup) { n.Devices[1].Kind = g.Kind }, "devices nvidia/gpu/A100 are listed twice",
		},
		"no type": {func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Kind.Type = "" }, `devices "nvidia//A100": invalid type: it is empty`},
		"a slash in the vendor": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Kind.Vendor = "a/b" }, `devices "a/b/gpu/A100": vendor and type of a/b/gpu/A100 contain no slash`,
		},
		"a slash in the name": {func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Kind.Name = "a/b" }, ""},
		"an attribute without a name": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Attributes[""] = cluster.DeviceAttribute{} },
			`devices nvidia/gpu/A100: invalid attribute "": it is empty`,
		},
		"an attribute with two values": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) {
				g.Attributes["x"] = cluster.DeviceAttribute{Kind: cluster.AttributeInt, Text: "5"}
			},
			`devices nvidia/gpu/A100: invalid attribute "x": it has more than one value, or a unit without a number`,
		},
		"a text with a unit": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) {
				g.Attributes["x"] = cluster.DeviceAttribute{Unit: "MiB"}
			},
			`devices nvidia/gpu/A100: invalid attribute "x": it has more than one value, or a unit without a number`,
		},
		"a number that is none": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) {
				g.Attributes["x"] = cluster.DeviceAttribute{Kind: cluster.AttributeFloat, Float: math.NaN()}
			},
			`devices nvidia/gpu/A100: invalid attribute "x": it is not a finite number`,
		},
		"an unknown kind of value": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) { g.Attributes["x"] = cluster.DeviceAttribute{Kind: 9} },
			`devices nvidia/gpu/A100: invalid attribute "x": its kind 9 is unknown`,
		},
		"too large": {
			func(_ *cluster.Node, g *cluster.DeviceGroup) {
				g.Devices[0].HealthDescription = strings.Repeat("x", cluster.MaxDeviceBytes)
			},
			"devices nvidia/gpu/A100: all kinds, ids, attributes and descriptions have at most 3145728 bytes but found 3146059",
		},
		"thousandths of GPUs too": {
			func(n *cluster.Node, _ *cluster.DeviceGroup) { n.Resources.GPU = 1000 },
			"a node has either thousandths of GPUs or devices: leave one of them out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := gpuNode()
			test.edit(n, n.Devices[0])
			if test.want == "" {
				must.NoError(t, n.CheckDevices())
				return
			}
			must.EqError(t, n.CheckDevices(), test.want)
		})
	}
}

// Registrations that list the same devices in other orders give the same node.
func TestNode_CanonicalDevices(t *testing.T) {
	t.Parallel()
	n := gpuNode()
	n.Devices[1].Attributes = map[string]cluster.DeviceAttribute{}
	n.Canonicalize()
	must.Eq(t, "intel/fpga/F100", n.Devices[0].Kind.String())
	must.True(t, n.Devices[0].Attributes == nil)
	must.Eq(t, []cluster.Device{{ID: "a"}, {ID: "b", Healthy: true, PCIBusID: "0:1"}}, n.Devices[1].Devices)
	g := n.DeviceGroup(cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"})
	must.Eq(t, "0:1", g.Device("b").PCIBusID)
	must.Nil(t, g.Device("c"))
	must.Nil(t, n.DeviceGroup(cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A10"}))

	n = &cluster.Node{ID: "n", Devices: []*cluster.DeviceGroup{}}
	n.Canonicalize()
	must.True(t, n.Devices == nil)
}

func TestDeviceRequest_Matches(t *testing.T) {
	t.Parallel()
	kind := cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100/40GB"}
	for name, want := range map[string]bool{
		"gpu": true, "nvidia/gpu": true, "nvidia/gpu/A100/40GB": true,
		"nvidia": false, "amd/gpu": false, "nvidia/gpu/A100": false, "gpu/": false,
	} {
		must.Eq(t, want, (&cluster.DeviceRequest{Name: name}).Matches(kind), must.Sprint(name))
	}
}

func TestJob_ValidateDevices(t *testing.T) {
	t.Parallel()
	const group, task = `Task group "front": `, `Task group "front": Task "server": `
	memory := cluster.Constraint{LTarget: "${device.attr.memory}", Operand: ">", RTarget: "2 GiB"}
	for name, test := range map[string]struct {
		requests []cluster.DeviceRequest
		edit     func(*cluster.Task)
		want     []string
	}{
		"as it should be": {requests: []cluster.DeviceRequest{
			{Name: "gpu", Count: 1}, {Name: "nvidia/gpu", Count: cluster.MaxDeviceCount, Constraints: []cluster.Constraint{memory}},
			{Name: "nvidia/gpu/A100/40GB", Count: 1, Affinities: []cluster.Affinity{{Constraint: memory, Weight: -100}, {Constraint: memory, Weight: 100}}},
			{Name: "gpu", Count: 1, Constraints: []cluster.Constraint{
				{LTarget: "${device.ids}", Operand: "set_contains", RTarget: "a,b"}, {LTarget: "${device.vendor}", RTarget: "nvidia"},
				{LTarget: "${device.type}", RTarget: "gpu"}, {LTarget: "${device.model}", Operand: "regexp", RTarget: "^A"},
			}},
		}},
		"no name": {requests: []cluster.DeviceRequest{{Count: 1}}, want: []string{
			task + `Device 0: the name must be "type", "vendor/type" or "vendor/type/name": it is empty`,
		}},
		"an empty part": {requests: []cluster.DeviceRequest{{Name: "nvidia//A100", Count: 1}}, want: []string{
			task + `Device "nvidia//A100": the name must be "type", "vendor/type" or "vendor/type/name": it is empty`,
		}},
		"none": {requests: []cluster.DeviceRequest{{Name: "gpu"}}, want: []string{task + `Device "gpu": Count must be between [1, 1024] but found 0`}},
		"more than any": {requests: []cluster.DeviceRequest{{Name: "gpu", Count: 1025}}, want: []string{
			task + `Device "gpu": Count must be between [1, 1024] but found 1025`,
		}},
		"a fact of nodes": {
			requests: []cluster.DeviceRequest{{Name: "gpu", Count: 1, Constraints: []cluster.Constraint{{LTarget: "${attr.x}", RTarget: "y"}}}},
			want:     []string{task + `Device "gpu": Constraint "${attr.x} = y": the target "${attr.x}" is not supported`},
		},
		"weights": {
			requests: []cluster.DeviceRequest{{Name: "gpu", Count: 1, Affinities: []cluster.Affinity{{Constraint: memory}, {Constraint: memory, Weight: 101}}}},
			want: []string{
				task + `Device "gpu": the weight of affinity "${device.attr.memory} > 2 GiB" must be between [-100, 100] and not 0 but found 0`,
				task + `Device "gpu": the weight of affinity "${device.attr.memory} > 2 GiB" must be between [-100, 100] and not 0 but found 101`,
			},
		},
		"too many requests": {
			requests: slicesRepeat(cluster.DeviceRequest{Name: "gpu", Count: 1}, 65),
			want:     []string{group + "A group has at most 64 requests for devices but found 65"},
		},
		"too many constraints": {
			requests: slicesRepeat(cluster.DeviceRequest{
				Name: "gpu", Count: 1,
				Constraints: slicesRepeat(cluster.Constraint{LTarget: "${device.ids}", Operand: "<", RTarget: "x"}, 3),
				Affinities:  slicesRepeat(cluster.Affinity{Constraint: cluster.Constraint{LTarget: "${device.ids}", Operand: "<", RTarget: "x"}, Weight: 1}, 2),
			}, 52),
			want: []string{group + "A group has at most 256 constraints and affinities of devices but found 260"},
		},
		"thousandths too": {
			requests: []cluster.DeviceRequest{{Name: "gpu", Count: 1}}, edit: func(t *cluster.Task) { t.Resources.GPU = 1 },
			want: []string{
				group + "A group asks for thousandths of GPUs or for devices, not for both",
				group + `Task "server": A task asks for thousandths of GPUs or for devices, not for both`,
			},
		},
		"too many regular expressions": {
			requests: []cluster.DeviceRequest{{
				Name: "gpu", Count: 1, Constraints: slicesRepeat(cluster.Constraint{LTarget: "${device.model}", Operand: "regexp", RTarget: "x"}, 6),
				Affinities: slicesRepeat(cluster.Affinity{Constraint: cluster.Constraint{LTarget: "${device.model}", Operand: "regexp", RTarget: "x"}, Weight: 1}, 5),
			}},
			want: []string{"A job has at most 10 constraints with a regular expression but found 11"},
		},
		"too much text": {
			requests: slicesRepeat(cluster.DeviceRequest{
				Name: "gpu", Count: 1,
				Constraints: slicesRepeat(cluster.Constraint{LTarget: "${device.model}", RTarget: strings.Repeat("x", 10_000)}, 10),
			}, 11),
			want: []string{"Config, Env, Meta, Constraints and Devices of a job have at most 1048576 bytes but found 1101683"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{
				Name: "front", Count: 1, Tasks: []*cluster.Task{{Name: "server", Driver: "raw_exec", Devices: test.requests}},
			}}}
			if test.edit != nil {
				test.edit(job.TaskGroups[0].Tasks[0])
			}
			job.Canonicalize()
			if test.want == nil {
				must.NoError(t, job.Validate())
				return
			}
			must.Eq(t, test.want, lines(job.Validate()))
		})
	}
}

func slicesRepeat[T any](one T, count int) []T {
	list := make([]T, count)
	for i := range list {
		list[i] = one
	}
	return list
}

// A cluster keeps of jobs and nodes what its version has.
func TestAt_KeepsWhatTheVersionHas(t *testing.T) {
	t.Parallel()
	job := &cluster.Job{ID: "web", Meta: map[string]string{"a": "b"}, TaskGroups: []*cluster.TaskGroup{nil, {Name: "g", Tasks: []*cluster.Task{
		nil, {Name: "t", Driver: "raw_exec", Devices: []cluster.DeviceRequest{{Name: "gpu", Count: 1}}},
	}}}}
	must.True(t, job == job.At(cluster.VersionOfDevices))
	for v := cluster.MinVersion; v < cluster.VersionOfDevices; v++ {
		kept := job.At(v)
		must.LessEq(t, v, kept.NeededVersion(), must.Sprint(v))
		must.Eq(t, v >= cluster.VersionOfDrivers, kept.TaskGroups[1].Tasks[1].Driver == "raw_exec")
		must.SliceEmpty(t, kept.TaskGroups[1].Tasks[1].Devices)
		must.Len(t, 1, job.TaskGroups[1].Tasks[1].Devices, must.Sprint("the job is the caller's"))
	}
	n := gpuNode()
	must.True(t, n == n.At(cluster.VersionOfDevices))
	must.SliceEmpty(t, n.At(cluster.VersionOfDevices-1).Devices)
	must.Len(t, 2, n.Devices)
}

func TestDevicesInUse(t *testing.T) {
	t.Parallel()
	gpu, fpga := cluster.DeviceKind{Vendor: "v", Type: "gpu", Name: "x"}, cluster.DeviceKind{Vendor: "v", Type: "fpga", Name: "x"}
	used := cluster.DevicesInUse{}
	used.Add(nil)
	used.Add(&cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "t", Kind: gpu, IDs: []string{"a"}}, {Task: "u", Kind: gpu, IDs: []string{"b"}}}})
	must.True(t, used[gpu]["a"] && used[gpu]["b"])
	must.False(t, used[gpu]["c"] || used[fpga]["a"])
}
