package node

import (
	"bytes"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

func text(t *cli.Table) string {
	var out bytes.Buffer
	t.Write(&out)
	return out.String()
}

// A node shows which devices of its plugins the client ignores.
func TestNodeStatus_deviceProblems(t *testing.T) {
	t.Parallel()
	node := wire.NewNode(&cluster.Node{Attributes: map[string]string{
		"os.name": "debian", "unique.device_problem": "devices a/b/c: too many", "unique.device_problem.nvidia-gpu": "the device \"x\" is ignored",
	}})
	must.Eq(t, `Plugin      Problem
-           devices a/b/c: too many
nvidia-gpu  the device "x" is ignored
`, text(deviceProblemTable(node)))
	must.Eq(t, "Plugin  Problem\n", text(deviceProblemTable(wire.NewNode(&cluster.Node{Attributes: map[string]string{"unique.device_problems": "x"}}))))
}

// A node shows its devices with their owners: allocations that have not ended.
func TestNodeStatus_devices(t *testing.T) {
	t.Parallel()
	gpu, fpga := cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}, cluster.DeviceKind{Vendor: "intel", Type: "fpga", Name: "F1"}
	node := wire.NewNode(&cluster.Node{Devices: []*cluster.DeviceGroup{
		{Kind: fpga, Devices: []cluster.Device{{ID: "a", Healthy: true}}},
		{Kind: gpu, Devices: []cluster.Device{{ID: "a", Healthy: true}, {ID: "b", HealthDescription: "too hot"}, {ID: "c", Healthy: true}}},
	}})
	of := func(id cluster.AllocID, s cluster.ClientStatus, ids ...string) *wire.Allocation {
		return wire.NewAllocation(&cluster.Allocation{ID: id, ClientStatus: s, Devices: &cluster.AssignedDevices{
			All: []cluster.AssignedDevice{{Task: "server", Kind: gpu, IDs: ids}},
		}}, "global")
	}
	allocs := []*wire.Allocation{
		of("0a1b2c3d-4e5f", cluster.ClientRunning, "a", "b"), of("1a1b2c3d-4e5f", cluster.ClientComplete, "c"),
		wire.NewAllocation(&cluster.Allocation{ID: "2a"}, "global"),
	}
	must.Eq(t, `Device           ID  Healthy  Allocation  Description
intel/fpga/F1    a   true     -           -
nvidia/gpu/A100  a   true     0a1b2c3d    -
nvidia/gpu/A100  b   false    0a1b2c3d    too hot
nvidia/gpu/A100  c   true     -           -
`, text(ownerTable(node, allocs, false)))
	must.StrContains(t, text(ownerTable(node, allocs, true)), "0a1b2c3d-4e5f")
	must.Eq(t, `Task    Device           IDs
server  nvidia/gpu/A100  a, b
`, text(alloc.AssignedTable(allocs[0])))
	must.Eq(t, "Task  Device  IDs\n", text(alloc.AssignedTable(allocs[2])))
}
