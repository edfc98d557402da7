package httpapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// failing are calls of controllers that fail.
type failing []volumes.FailedCall

func (f failing) FailingCalls() []volumes.FailedCall { return f }

// failingCall is a call for a volume on the n-th node.
func failingCall(id cluster.VolumeID, n int) volumes.FailedCall {
	return volumes.FailedCall{
		Volume: cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: id}, Plugin: "disks", Node: nodeID(n), Failures: 3,
		Controller: nodeID(2), LastError: "the key hush is wrong", LastAt: noon, NextAt: noon.Add(4 * time.Second),
	}
}

// volumesOf answers which volumes the failing calls of an answer are for, as "volume on node".
func volumesOf(t *testing.T, url string) (names []string) {
	t.Helper()
	var body struct{ ControllerCalls []wire.ControllerCall }
	a := request(t, "GET", url, "")
	must.Eq(t, 200, a.code, must.Sprint(a.body))
	must.NoError(t, json.Unmarshal([]byte(a.body), &body))
	for _, c := range body.ControllerCalls {
		names = append(names, c.Namespace+"/"+c.Volume+" on "+c.NodeID[:8])
	}
	return names
}

// requesting registers a job with a group that uses a volume, or for one for each allocation.
func requesting(w *fixture, id string, volume cluster.VolumeID, perAlloc bool) *cluster.Job {
	j := w.job(id, cluster.JobService, 1).Copy()
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{
		Name: "d", Type: cluster.VolumeCSI, Source: volume, PerAlloc: perAlloc,
		Capability: cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem},
	}}
	return w.Job(j)
}

// An answer shows a failing call of a controller where an operator reads it: at the volume, the allocation that waits
// for it, the job, and the drain of a node.
func TestControllerCalls(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(3)
	pluginNode(w, 1, "")
	pluginNode(w, 2, "")
	for _, id := range []cluster.VolumeID{"data", "logs[2]", "other"} {
		w.must(&shims.VolumeRegister{At: w.Now(), Volume: &cluster.Volume{ID: id, ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{{
			Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem,
		}}}})
	}
	web, logs := requesting(w, "web", "data", false), requesting(w, "logs", "logs", true)
	w.place(1, web, nodeID(1))
	w.place(2, logs, nodeID(2))
	w.place(3, w.job("plain", cluster.JobService, 1), nodeID(1))
	b := w.backend()
	b.Controllers = failing{failingCall("data", 1), failingCall("data", 3), failingCall("logs[2]", 2), failingCall("other", 3)}
	base := w.serveAs(b, httpapi.Options{}).URL

	data1, data3, logs2, other3 := "default/data on a0000001", "default/data on a0000003", "default/logs[2] on a0000002", "default/other on a0000003"
	must.Eq(t, []string{data1, data3}, volumesOf(t, base+"/v1/volume/csi/data"))
	must.Eq(t, []string{data1}, volumesOf(t, base+"/v1/allocation/"+string(allocID(1))), must.Sprint("its claim is of its node"))
	must.Eq(t, []string{logs2}, volumesOf(t, base+"/v1/allocation/"+string(allocID(2))))
	must.SliceEmpty(t, volumesOf(t, base+"/v1/allocation/"+string(allocID(3))))
	must.Eq(t, []string{data1, data3}, volumesOf(t, base+"/v1/job/web/summary"))
	must.Eq(t, []string{logs2}, volumesOf(t, base+"/v1/job/logs/summary"))
	must.SliceEmpty(t, volumesOf(t, base+"/v1/job/plain/summary"))

	must.Eq(t, []string{data3, other3}, volumesOf(t, base+"/v1/node/"+string(nodeID(3))+"/drain"), must.Sprint("calls for the node"))
	w.drain(nodeID(1), cluster.DrainSpec{})
	must.Eq(t, []string{data1, data3}, volumesOf(t, base+"/v1/node/"+string(nodeID(1))+"/drain"), must.Sprint("and those that a replacement waits for"))
	golden(t, "controller-calls.json", request(t, "GET", base+"/v1/node/"+string(nodeID(3))+"/drain?pretty", ""))

	b.Access = everyToken()
	base = w.serveAs(b, httpapi.Options{}).URL
	for _, path := range []string{
		"/v1/volume/csi/data", "/v1/allocation/" + string(allocID(1)), "/v1/job/web/summary", "/v1/node/" + string(nodeID(1)) + "/drain",
	} {
		shown, hidden := request(t, "GET", base+path, "", "X-Nomad-Token", "writer-token"), request(t, "GET", base+path, "", "X-Nomad-Token", "reader-token")
		must.StrContains(t, shown.body, "hush", must.Sprint(path))
		must.StrNotContains(t, hidden.body, "hush", must.Sprint(path))
		must.StrContains(t, hidden.body, `"Failures":3`, must.Sprint(path))
	}
}
