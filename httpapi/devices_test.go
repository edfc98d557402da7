package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// gpuJob is a job of the reference whose task needs GPUs.
func gpuJob(count uint64) *api.Job {
	j := newJob(1, 100)
	j.TaskGroups[0].Tasks[0].Driver = "raw_exec"
	j.TaskGroups[0].Tasks[0].Resources.Devices = []*api.RequestedDevice{{
		Name: "nvidia/gpu", Count: &count,
		Constraints: []*api.Constraint{{LTarget: "${device.attr.memory}", Operand: ">=", RTarget: "2 GiB"}},
		Affinities:  []*api.Affinity{{LTarget: "${device.model}", Operand: "=", RTarget: "A100", Weight: new(int8(7))}},
	}}
	return j
}

// An operator registers a job with requests for devices, and reads which ones its allocation has got.
func TestReferenceClient_Devices(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	n := w.State().Node(nodeID(1)).Copy()
	n.Devices = []*cluster.DeviceGroup{gpus("a!", "b", "c")}
	n.Devices[0].Attributes = map[string]cluster.DeviceAttribute{"memory": {Kind: cluster.AttributeInt, Int: 16, Unit: "GiB"}}
	w.must(&shims.NodeRegister{At: w.Now(), Node: n})
	c := w.client()

	result.Read(c.Jobs().Register(gpuJob(2), nil)).OK(t)
	j := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	plan := w.schedule(j)
	must.Len(t, 1, plan.Places)
	a := result.Read(c.Allocations().Info(string(plan.Places[0].ID), nil)).OK(t)
	for _, task := range a.AllocatedResources.Tasks {
		must.Eq(t, []*api.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "A100", DeviceIDs: []string{"b", "c"}}}, task.Devices)
	}
	stored := result.Read(c.Nodes().Info(string(nodeID(1)), nil)).OK(t)
	must.Len(t, 3, stored.NodeResources.Devices[0].Instances)

	back := result.Read(c.Jobs().Info("web", nil)).OK(t)
	must.Eq(t, gpuJob(2).TaskGroups[0].Tasks[0].Resources.Devices, back.TaskGroups[0].Tasks[0].Resources.Devices)

	next := gpuJob(3)
	request := next.TaskGroups[0].Tasks[0].Resources.Devices[0]
	request.Constraints[0].RTarget, request.Affinities[0].Weight = "4 GiB", new(int8(8))
	preview := result.Read(c.Jobs().Plan(next, true, nil)).OK(t)
	device := preview.Diff.TaskGroups[0].Tasks[0].Objects[0]
	must.Eq(t, "Device", device.Name)
	must.Eq(t, "Edited", device.Type)
	must.Eq(t, []*api.FieldDiff{{Type: "Edited", Name: "Count", Old: "2", New: "3"}}, device.Fields)
	var changes []string
	for _, o := range device.Objects {
		changes = append(changes, o.Type+" "+o.Name)
	}
	must.Eq(t, []string{"Deleted Constraint", "Added Constraint", "Deleted Affinity", "Added Affinity"}, changes)

	_, _, err := c.Jobs().Register(gpuJob(0), nil)
	must.ErrorContains(t, err, `group "web", task "main": Resources.Devices[0].Count is 0; the least is 1`)
	_, _, err = c.Jobs().Register(gpuJob(1025), nil)
	must.ErrorContains(t, err, `group "web", task "main": Resources.Devices[0].Count is 1025; the most is 1024`)
	unreadable := gpuJob(1)
	unreadable.TaskGroups[0].Tasks[0].Resources.Devices[0].Affinities[0].Operand = "regexp"
	unreadable.TaskGroups[0].Tasks[0].Resources.Devices[0].Affinities[0].RTarget = "("
	_, _, err = c.Jobs().Register(unreadable, nil)
	must.ErrorContains(t, err, "missing closing )")
}

// While the servers of a cluster are upgraded to the version with devices, a registration keeps the rest of a
// job, and its answer has a warning.
func TestReferenceClient_DevicesBeforeTheirVersion(t *testing.T) {
	t.Parallel()
	w := newOldFixture(t)
	w.must(&shims.RaiseClusterVersion{Version: cluster.VersionOfDevices - 1})
	w.serve(httpapi.Options{})
	answer := result.Read(w.client().Jobs().Register(gpuJob(1), nil)).OK(t)
	must.Eq(t, "the cluster has version 5 until all its servers are upgraded: devices and volumes of the job have no effect yet; register it again after the upgrade", answer.Warnings)
	kept := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	must.Eq(t, "raw_exec", kept.TaskGroups[0].Tasks[0].Driver)
	must.SliceEmpty(t, kept.TaskGroups[0].Tasks[0].Devices)
}

// Before all servers have ports, a job that requests them is refused: its tasks would find none.
func TestReferenceClient_PortsBeforeTheirVersion(t *testing.T) {
	t.Parallel()
	w := newOldFixture(t)
	w.must(&shims.RaiseClusterVersion{Version: cluster.VersionOfPorts - 1})
	w.serve(httpapi.Options{})
	job := gpuJob(1)
	job.TaskGroups[0].Networks = []*api.NetworkResource{{DynamicPorts: []api.Port{{Label: "http"}}}}
	_, _, err := w.client().Jobs().Register(job, nil)
	must.ErrorContains(t, err, "the cluster has version 8 until all its servers are upgraded, and jobs with ports need version 9: upgrade the servers, then register the job")
	must.Nil(t, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}))
}

// A client registers ten thousand devices. Bad lists are refused with what is wrong.
//
//race:skip one request after the other
func TestClient_Devices(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL + "/v1/client/" + string(nodeID(1)) + "/register"
	register := func(groups ...*cluster.DeviceGroup) answer {
		n := w.State().Node(nodeID(1)).Copy()
		n.Devices = groups
		body := result.Of(json.Marshal(wire.NewRegistration(n))).OK(t)
		return request(t, "PUT", url, string(body))
	}
	var ids []string
	for i := range 10_000 {
		ids = append(ids, fmt.Sprintf("GPU-%036d", i))
	}
	must.Eq(t, 200, register(gpus(ids...)).code)
	must.Len(t, 10_000, w.State().Node(nodeID(1)).Devices[0].Devices)
	for want, g := range map[string]*cluster.DeviceGroup{
		`devices nvidia/gpu/A100: device "a" is listed twice`:                       gpus("a", "b", "a"),
		"devices nvidia/gpu/A100: device 1: invalid id: it is empty":                gpus("a", ""),
		"devices nvidia/gpu/A100: a node has at most 16384 devices but found 16385": gpus(make([]string, 16_385)...),
		`devices "//": invalid vendor: it is empty`:                                 {},
	} {
		refused := register(g)
		must.Eq(t, 400, refused.code)
		must.Eq(t, want, refused.body)
	}
	// What the check accepts fits into the body: a client whose registration is too large sends no heartbeats.
	large, facts := gpus(ids...), gpus("a")
	for i := range large.Devices {
		large.Devices[i].HealthDescription, large.Devices[i].PCIBusID = `"<too hot> & loud"`+strings.Repeat("x", 80), "0000:01:00.0"
	}
	facts.Attributes = map[string]cluster.DeviceAttribute{}
	for i := range cluster.MaxDeviceAttributes {
		facts.Attributes[fmt.Sprint(i)] = cluster.DeviceAttribute{Kind: cluster.AttributeFloat, Float: -math.MaxFloat64 / float64(i+1)}
	}
	for _, g := range []*cluster.DeviceGroup{large, facts} {
		n := &cluster.Node{}
		for len(n.Devices) < cluster.MaxDeviceKinds {
			g = g.Copy()
			g.Kind.Name = fmt.Sprint(len(n.Devices))
			n.Devices = append(n.Devices, g)
		}
		usable, err := cluster.UsableDevices(n.Devices)
		must.Error(t, err)
		must.Eq(t, 200, register(usable...).code)
	}
	answered := decode[wire.HeartbeatResponse](t, register(gpus("a")))
	must.Eq(t, cluster.MaxVersion, answered.ClusterVersion)
	beat := decode[wire.HeartbeatResponse](t, request(t, "PUT", w.serve(httpapi.Options{}).URL+"/v1/client/"+string(nodeID(1))+"/heartbeat", ""))
	must.Eq(t, cluster.MaxVersion, beat.ClusterVersion)
}
