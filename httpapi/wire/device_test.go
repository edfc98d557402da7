package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

func gpu() cluster.DeviceKind { return cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"} }

func gpuNode() *cluster.Node {
	return &cluster.Node{ID: "n", SecretID: "s", Devices: []*cluster.DeviceGroup{{
		Kind: gpu(),
		Attributes: map[string]cluster.DeviceAttribute{
			"memory": {Kind: cluster.AttributeInt, Int: 11441, Unit: "MiB"}, "power": {Kind: cluster.AttributeFloat, Float: 0.25, Unit: "kW"},
			"ecc": {Kind: cluster.AttributeBool}, "driver": {Text: ""},
		},
		Devices: []cluster.Device{{ID: "a", Healthy: true, PCIBusID: "0000:03:00.0"}, {ID: "b", HealthDescription: "too hot"}},
	}}}
}

// The devices of a node travel from its client to the servers, and to the reference's client.
func TestDevices_ANodeComesBack(t *testing.T) {
	t.Parallel()
	want := gpuNode()
	must.NoError(t, want.CheckDevices())
	var w wire.RegisterRequest
	must.NoError(t, json.Unmarshal(encode(t, wire.NewRegistration(want)), &w))
	must.Eq(t, want, w.Node.Node())

	var n api.Node
	must.NoError(t, json.Unmarshal(encode(t, wire.NewNode(want)), &n))
	must.Len(t, 1, n.NodeResources.Devices)
	d := n.NodeResources.Devices[0]
	must.Eq(t, "nvidia/gpu/A100", d.ID())
	must.Eq(t, &api.NodeDevice{ID: "a", Healthy: true, Locality: &api.NodeDeviceLocality{PciBusID: "0000:03:00.0"}}, d.Instances[0])
	must.Eq(t, &api.NodeDevice{ID: "b", HealthDescription: "too hot"}, d.Instances[1])
	must.Eq(t, "11441 MiB", d.Attributes["memory"].String())
	must.Eq(t, 0.25, *d.Attributes["power"].FloatVal)
	must.False(t, *d.Attributes["ecc"].BoolVal)
	must.Eq(t, "", *d.Attributes["driver"].StringVal)

	must.NoError(t, json.Unmarshal(encode(t, n.NodeResources), &w.Node.NodeResources))
	must.Eq(t, want.Devices, w.Node.Node().Devices, must.Sprint("the reference's shape"))
	must.NotEq(t, wire.NewNode(want).ComputedClass, wire.NewNode(&cluster.Node{ID: "n"}).ComputedClass)
}

// Bad registrations are refused by the check of the node and not dropped.
func TestDevices_BadRegistrations(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`[null]`: `devices "//": invalid vendor: it is empty`,
		`[{"Vendor":"v","Type":"gpu","Name":"x","Instances":[null]}]`:                               "devices v/gpu/x: device 0: invalid id: it is empty",
		`[{"Vendor":"v","Type":"gpu","Name":"x","Instances":[{"ID":"a"},{"ID":"a"}]}]`:              `devices v/gpu/x: device "a" is listed twice`,
		`[{"Vendor":"v","Type":"gpu","Name":"x","Attributes":{"m":{"String":"5","Unit":"MiB"}}}]`:   `devices v/gpu/x: invalid attribute "m": it has more than one value, or a unit without a number`,
		`[{"Vendor":"v","Type":"gpu","Name":"x"},{"Vendor":"v","Type":"gpu","Name":"x"}]`:           "devices v/gpu/x are listed twice",
		`[{"Vendor":"v","Type":"gpu","Name":"x","Attributes":{"m":null},"Instances":[{"ID":"a"}]}]`: "",
	} {
		w := wire.Node{NodeResources: &wire.NodeResources{}}
		must.NoError(t, json.Unmarshal([]byte(body), &w.NodeResources.Devices))
		if err := w.Node().CheckDevices(); want == "" {
			must.NoError(t, err)
		} else {
			must.EqError(t, err, want)
		}
	}
}

func deviceJob() *cluster.Job {
	j := driverJob()
	j.TaskGroups[0].Tasks[0].Devices = []cluster.DeviceRequest{
		{Name: "gpu", Count: 1},
		{
			Name: "nvidia/gpu", Count: 2,
			Constraints: []cluster.Constraint{{LTarget: "${device.attr.memory}", Operand: ">=", RTarget: "2 GiB"}},
			Affinities:  []cluster.Affinity{{Constraint: cluster.Constraint{LTarget: "${device.model}", Operand: "=", RTarget: "A100"}, Weight: -7}},
		},
	}
	j.TaskGroups[0].Tasks[1].Devices = []cluster.DeviceRequest{{Name: "gpu", Count: 1}}
	return j
}

func TestDevices_AJobComesBack(t *testing.T) {
	t.Parallel()
	want := deviceJob()
	must.NoError(t, want.Validate())
	ours := encode(t, wire.NewJob(want, "global"))
	var reference api.Job
	must.NoError(t, json.Unmarshal(ours, &reference))
	reference.Canonicalize()
	devices := reference.TaskGroups[0].Tasks[0].Resources.Devices
	must.Eq(t, uint64(2), *devices[1].Count)
	must.Eq(t, int8(-7), *devices[1].Affinities[0].Weight)
	must.Eq(t, "2 GiB", devices[1].Constraints[0].RTarget)
	for _, text := range [][]byte{ours, encode(t, &reference)} {
		var w wire.Job
		must.NoError(t, json.Unmarshal(text, &w))
		got, err := w.Job()
		must.NoError(t, err)
		must.Eq(t, want.TaskGroups[0].Tasks[0].Devices, got.TaskGroups[0].Tasks[0].Devices)
		must.Eq(t, want.TaskGroups[0].Tasks[1].Devices, got.TaskGroups[0].Tasks[1].Devices)
	}

	// The reference fills in a count and a weight.
	plain := &api.Job{ID: new("x"), TaskGroups: []*api.TaskGroup{{Name: new("g"), Tasks: []*api.Task{{Name: "t", Driver: "mock", Resources: &api.Resources{
		Devices: []*api.RequestedDevice{{Name: "gpu", Affinities: []*api.Affinity{{LTarget: "${device.vendor}", RTarget: "nvidia"}}}},
	}}}}}}
	plain.Canonicalize()
	var w wire.Job
	must.NoError(t, json.Unmarshal(encode(t, plain), &w))
	j, err := w.Job()
	must.NoError(t, err)
	must.Eq(t, []cluster.DeviceRequest{{Name: "gpu", Count: 1, Affinities: []cluster.Affinity{
		{Constraint: cluster.Constraint{LTarget: "${device.vendor}", Operand: "=", RTarget: "nvidia"}, Weight: 50},
	}}}, j.TaskGroups[0].Tasks[0].Devices)
}

// The client gets the devices of its allocation in the order of the job, and the reference's client by
// task.
func TestDevices_AnAllocationComesBack(t *testing.T) {
	t.Parallel()
	a := &cluster.Allocation{
		ID: "a", NodeID: "n", Namespace: "default", JobID: "web", TaskGroup: "front", Job: deviceJob(),
		Devices: &cluster.AssignedDevices{All: []cluster.AssignedDevice{
			{Task: "server", Kind: gpu(), IDs: []string{"a"}}, {Task: "server", Kind: gpu(), IDs: []string{"b", "c"}}, {Task: "proxy", Kind: gpu(), IDs: []string{"d"}},
		}},
	}
	var w wire.Allocation
	text := encode(t, wire.NewAllocation(a, "global"))
	must.NoError(t, json.Unmarshal(text, &w))
	back, err := w.Allocation()
	must.NoError(t, err)
	must.Eq(t, a.Devices, back.Devices)
	var reference api.Allocation
	must.NoError(t, json.Unmarshal(text, &reference))
	must.Eq(t, &api.AllocatedDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "A100", DeviceIDs: []string{"b", "c"}},
		reference.AllocatedResources.Tasks["server"].Devices[1])

	a.Job = nil // a damaged record keeps its devices, by task
	must.NoError(t, json.Unmarshal(encode(t, wire.NewAllocation(a, "global")), &w))
	w.Job = nil
	back, err = w.Allocation()
	must.NoError(t, err)
	must.Eq(t, "proxy", back.Devices.All[0].Task)
	a.Devices = nil
	must.NoError(t, json.Unmarshal(encode(t, wire.NewAllocation(a, "global")), new(wire.Allocation)))
	must.StrNotContains(t, string(encode(t, wire.NewAllocation(a, "global"))), "DeviceIDs")
}

// The devices of a registration that pass the check come back from their own JSON.
func FuzzDevices(f *testing.F) {
	f.Add(encode(f, wire.NewNode(gpuNode()).NodeResources.Devices))
	f.Add([]byte(`[{"Vendor":"v","Type":"gpu","Name":"a/b","Instances":[{"ID":"a","Locality":{}},{"ID":"b"}],"Attributes":{"m":{"Int":-9223372036854775808,"Unit":"B"},"f":{"Float":1e308}}},null]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := wire.Node{NodeResources: &wire.NodeResources{}}
		if json.Unmarshal(body, &w.NodeResources.Devices) != nil {
			return
		}
		n := w.Node()
		if n.CheckDevices() != nil {
			return
		}
		n.Canonicalize()
		var again wire.Node
		must.NoError(t, json.Unmarshal(encode(t, wire.NewNode(n)), &again))
		back := again.Node()
		back.Canonicalize()
		must.Eq(t, n.Devices, back.Devices)
	})
}
