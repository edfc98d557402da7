package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

func portJob() *cluster.Job {
	j := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: 1,
		Ports: []cluster.PortRequest{{Label: "ssh", Static: 22}, {Label: "http", To: 8080}},
		Tasks: []*cluster.Task{{Name: "a"}, {Name: "b", Driver: "x", Ports: []cluster.PortRequest{{Label: "db", Static: 5432}, {Label: "admin"}}}},
	}}}
	j.Canonicalize()
	return j
}

func TestPorts_ANodeComesBack(t *testing.T) {
	t.Parallel()
	want := &cluster.Node{ID: "n", Network: &cluster.NodeNetwork{
		Device: "eth0", IP: "10.0.0.1", MinDynamicPort: 20000, MaxDynamicPort: 32000, Reserved: cluster.PortRanges{{First: 22, Last: 22}, {First: 8000, Last: 8010}},
	}}
	body := encode(t, wire.NewNode(want))
	var reference api.Node
	must.NoError(t, json.Unmarshal(body, &reference))
	must.Eq(t, "10.0.0.1", reference.NodeResources.Networks[0].IP)
	must.Eq(t, 32000, reference.NodeResources.MaxDynamicPort)
	must.Eq(t, "22,8000-8010", reference.ReservedResources.Networks.ReservedHostPorts)
	for _, text := range [][]byte{body, encode(t, reference)} {
		var w wire.Node
		must.NoError(t, json.Unmarshal(text, &w))
		must.Eq(t, want.Network, w.Node().Network)
	}
	var w wire.Node
	must.NoError(t, json.Unmarshal(body, &w))
	w.ReservedResources.Networks.ReservedHostPorts = "many"
	must.ErrorContains(t, w.Node().Network.Check(), "reserved ports must be within")
}

func TestPorts_AJobComesBack(t *testing.T) {
	t.Parallel()
	want := portJob()
	body := encode(t, wire.NewJob(want, "global"))
	var reference api.Job
	must.NoError(t, json.Unmarshal(body, &reference))
	must.Eq(t, []api.Port{{Label: "ssh", Value: 22}}, reference.TaskGroups[0].Networks[0].ReservedPorts)
	must.Eq(t, []api.Port{{Label: "http", To: 8080}}, reference.TaskGroups[0].Networks[0].DynamicPorts)
	for _, text := range [][]byte{body, encode(t, reference)} {
		var w wire.Job
		must.NoError(t, json.Unmarshal(text, &w))
		got, err := w.Job()
		must.NoError(t, err)
		must.Eq(t, want.TaskGroups[0].Ports, got.TaskGroups[0].Ports)
		must.Eq(t, want.TaskGroups[0].Tasks[1].Ports, got.TaskGroups[0].Tasks[1].Ports)
	}
	for body, want := range map[string]string{
		`[{"ReservedPorts":[{"Label":"a"}]}]`:                                         `port "a": a port of ReservedPorts needs a Value`,
		`[{"DynamicPorts":[{"Label":"a"}]},null,{},{"DynamicPorts":[{"Label":"b"}]}]`: "only one network can have ports",
		`[{"DynamicPorts":[{"Label":"a","To":-1}]},{"Mode":"host"}]`:                  "",
	} {
		var w wire.Job
		must.NoError(t, json.Unmarshal([]byte(`{"ID":"x","TaskGroups":[{"Name":"g","Networks":`+body+`,"Tasks":[{"Name":"t"}]}]}`), &w))
		j, err := w.Job()
		if want != "" {
			must.ErrorContains(t, err, want)
			continue
		}
		must.NoError(t, err)
		must.Eq(t, []cluster.PortRequest{{Label: "a"}}, j.TaskGroups[0].Ports)
	}
}

// The reference's command prints the ports of an allocation from these fields.
func TestPorts_AnAllocationComesBack(t *testing.T) {
	t.Parallel()
	a := &cluster.Allocation{ID: "a", JobID: "web", Job: portJob(), TaskGroup: "g", Ports: &cluster.AssignedPorts{IP: "10.0.0.1", All: []cluster.AssignedPort{
		{Label: "ssh", Number: 22}, {Label: "http", Number: 20001, To: 8080}, {Task: "b", Label: "db", Number: 5432}, {Task: "b", Label: "admin", Number: 20002},
	}}}
	body := encode(t, wire.NewAllocation(a, "global"))
	var w wire.Allocation
	must.NoError(t, json.Unmarshal(body, &w))
	back, err := w.Allocation()
	must.NoError(t, err)
	must.Eq(t, a.Ports, back.Ports)

	var reference api.Allocation
	must.NoError(t, json.Unmarshal(body, &reference))
	shared := reference.AllocatedResources.Shared
	must.Eq(t, []api.PortMapping{{Label: "ssh", Value: 22, HostIP: "10.0.0.1"}, {Label: "http", Value: 20001, To: 8080, HostIP: "10.0.0.1"}}, shared.Ports)
	must.Eq(t, []*api.NetworkResource{{
		Mode: "host", IP: "10.0.0.1", ReservedPorts: []api.Port{{Label: "ssh", Value: 22}}, DynamicPorts: []api.Port{{Label: "http", Value: 20001, To: 8080}},
	}}, shared.Networks)
	must.Eq(t, []api.Port{{Label: "admin", Value: 20002}}, reference.AllocatedResources.Tasks["b"].Networks[0].DynamicPorts)
	a.Ports = nil
	must.NoError(t, json.Unmarshal(encode(t, wire.NewAllocation(a, "global")), &reference))
	must.SliceEmpty(t, reference.AllocatedResources.Shared.Ports)
}
