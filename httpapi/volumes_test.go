package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

var dataKey = cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: "data"}

// pluginNode registers the n-th node with the storage plugin "disks".
func pluginNode(w *fixture, n int, alloc cluster.AllocID) {
	node := w.State().Node(nodeID(n)).Copy()
	node.StoragePlugins = []*cluster.StoragePlugin{{
		ID: "disks", Type: cluster.PluginMonolith, Alloc: alloc, Healthy: true, Provider: "disks.example", Version: "1.2.3", NodeID: "m1",
		MaxVolumes: 7, Stages: true, Attaches: true, UpdateTime: noon,
	}}
	w.must(&shims.NodeRegister{At: w.Now(), Node: node})
}

func dataVolume() *api.CSIVolume {
	return &api.CSIVolume{
		ID: "data", Name: "the data", ExternalID: "vol-1", PluginID: "disks", Secrets: api.CSISecrets{"key": "hush"},
		RequestedCapabilities: []*api.CSIVolumeCapability{{AccessMode: "single-node-writer", AttachmentMode: "file-system"}},
	}
}

// volumeJob returns a job that uses the volume "data".
func volumeJob() *api.Job {
	job := api.NewServiceJob("web", "web", "global", 50)
	job.Datacenters = []string{"dc1"}
	group := api.NewTaskGroup("web", 1)
	group.Volumes = map[string]*api.VolumeRequest{"d": {
		Name: "d", Type: "csi", Source: "data", AccessMode: "single-node-writer", AttachmentMode: "file-system",
		MountOptions: &api.CSIMountOptions{FSType: "ext4", MountFlags: []string{"noatime"}},
	}}
	task := api.NewTask("main", "mock")
	task.VolumeMounts = []*api.VolumeMount{{Volume: new("d"), Destination: new("/data"), ReadOnly: new(true)}}
	group.AddTask(task)
	return job.AddTaskGroup(group)
}

// The compatible client registers a volume and a job that uses it, reads the claim and the plugin, and
// deregisters the volume.
func TestVolumes_CompatibleClient(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	pluginNode(w, 1, allocID(9))
	c := w.client()

	result.Of(c.CSIVolumes().Register(dataVolume(), nil)).OK(t)
	result.Read(c.Jobs().Register(volumeJob(), nil)).OK(t)
	job := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	must.Eq(t, "ext4", job.TaskGroups[0].Volumes[0].MountOptions.FSType)
	read := result.Read(c.Jobs().Info("web", nil)).OK(t)
	must.Eq(t, volumeJob().TaskGroups[0].Volumes, read.TaskGroups[0].Volumes)
	must.Eq(t, "/data", *read.TaskGroups[0].Tasks[0].VolumeMounts[0].Destination)
	must.True(t, *read.TaskGroups[0].Tasks[0].VolumeMounts[0].ReadOnly)
	w.place(1, job, nodeID(1))

	list := result.Read(c.CSIVolumes().List(nil)).OK(t)
	must.Len(t, 1, list)
	must.Eq(t, 1, list[0].CurrentWriters)
	must.True(t, list[0].Schedulable)
	v := result.Read(c.CSIVolumes().Info("data", nil)).OK(t)
	must.Eq(t, "vol-1", v.ExternalID)
	must.Eq(t, "disks.example", v.Provider)
	must.Eq(t, api.CSIVolumeAccessMode("single-node-writer"), v.AccessMode)
	must.MapContainsKey(t, v.WriteAllocs, string(allocID(1)))
	must.Eq(t, string(allocID(1)), v.Allocations[0].ID)
	must.Eq(t, "[redacted]", v.Secrets["key"])
	must.Positive(t, v.CreateTime)

	all := result.Read(c.CSIPlugins().List(nil)).OK(t)
	must.Eq(t, 1, all[0].NodesHealthy)
	plugin := result.Read(c.CSIPlugins().Info("disks", nil)).OK(t)
	must.Eq(t, "1.2.3", plugin.Version)
	must.Eq(t, "m1", plugin.Nodes[string(nodeID(1))].NodeInfo.ID)
	must.True(t, plugin.Controllers[string(nodeID(1))].ControllerInfo.SupportsAttachDetach)
	node := result.Read(c.Nodes().Info(string(nodeID(1)), nil)).OK(t)
	must.Eq(t, 7, node.CSINodePlugins["disks"].NodeInfo.MaxVolumes)

	must.ErrorContains(t, c.CSIVolumes().Deregister("data", false, nil), "volume in use")
	must.ErrorContains(t, c.CSIVolumes().Detach("data", string(nodeID(1)), nil), "has not ended: stop it first")
	must.NoError(t, c.CSIVolumes().Deregister("data", true, nil))
	must.ErrorContains(t, c.CSIVolumes().Deregister("data", true, nil), "volume not found")
	_, _, err := c.CSIVolumes().Info("data", nil)
	must.ErrorContains(t, err, "volume not found")
	_, _, err = c.CSIPlugins().Info("none", nil)
	must.ErrorContains(t, err, "plugin not found")
}

// A node's client reads the volumes that it must mount with their secrets, and reports what it has unmounted.
func TestVolumes_NodeSide(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	pluginNode(w, 1, "")
	server := w.serve(httpapi.Options{})
	c := result.Of(api.NewClient(&api.Config{Address: server.URL})).OK(t)
	result.Of(c.CSIVolumes().Register(dataVolume(), nil)).OK(t)
	result.Read(c.Jobs().Register(volumeJob(), nil)).OK(t)
	w.place(1, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}), nodeID(1))

	ours := result.Of(client.New(client.Config{Address: server.URL, Token: secretOf(nodeID(1))})).OK(t)
	side := ours.NodeSide(nodeID(1))
	claimed, index, err := side.Volumes(t.Context(), 0, 0)
	must.NoError(t, err)
	must.Positive(t, index)
	must.Len(t, 1, claimed)
	must.Eq(t, "hush", claimed[0].Volume.Secrets["key"])
	claim := w.State().WorkView().Claim(cluster.ClaimKey{Volume: dataKey, Alloc: allocID(1)})
	must.Eq(t, []*cluster.VolumeClaim{claim}, claimed[0].Claims)
	must.True(t, claim.WaitsForController())
	one := result.Of(side.Volume(t.Context(), dataKey)).OK(t)
	must.Eq(t, claimed[0], *one)
	one = result.Of(side.Volume(t.Context(), cluster.VolumeKey{Namespace: "other", ID: "data"})).OK(t)
	must.Nil(t, one)
	none := result.Read(ours.NodeSide(nodeID(2)).Volumes(t.Context(), 0, 0)).OK(t)
	must.SliceEmpty(t, none)

	result.Of(ours.NodeSide(nodeID(2)).Release(t.Context(), []cluster.ClaimKey{claim.Key()})).OK(t)
	must.Eq(t, cluster.ClaimTaken, w.State().WorkView().Claim(claim.Key()).State, must.Sprint("a claim of another node"))
	result.Of(side.Release(t.Context(), []cluster.ClaimKey{claim.Key()})).OK(t)
	must.Eq(t, cluster.ClaimNodeDetached, w.State().WorkView().Claim(claim.Key()).State)
}

// Below cluster version 7 a job with volumes is refused: without them its tasks would write elsewhere.
func TestVolumes_OlderCluster(t *testing.T) {
	t.Parallel()
	w := newOldFixture(t).nodes(1)
	w.must(&shims.RaiseClusterVersion{Version: cluster.VersionOfVolumes - 1})
	c := w.client()
	_, _, err := c.Jobs().Register(volumeJob(), nil)
	must.ErrorContains(t, err, "jobs with volumes need version 7")

	plugin := volumeJob()
	plugin.TaskGroups[0].Volumes, plugin.TaskGroups[0].Tasks[0].VolumeMounts = nil, nil
	plugin.TaskGroups[0].Tasks[0].CSIPluginConfig = &api.TaskCSIPluginConfig{ID: "disks", Type: api.CSIPluginTypeNode}
	done := result.Read(c.Jobs().Register(plugin, nil)).OK(t)
	must.StrContains(t, done.Warnings, "storage plugins serve no volumes yet")
	task := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).TaskGroups[0].Tasks[0]
	must.True(t, task.StoragePlugin)
	must.Nil(t, task.CSIPlugin)
}

func TestVolumes_BadRequests(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	server := w.serve(httpapi.Options{})
	for _, test := range []struct {
		method, path, body string
		code               int
	}{
		{http.MethodPut, "/v1/volume/csi/data", `{"Volumes":[]}`, 400},
		{http.MethodPut, "/v1/volume/csi/data", `{"Volumes":[null]}`, 400},
		{http.MethodPut, "/v1/volume/csi/data", `{"Volumes":[{"ID":"data"}]}`, 400},
		{http.MethodPut, "/v1/volume/csi/other", `{"Volumes":[{"ID":"data","ExternalID":"x","PluginID":"p","AccessMode":"single-node-writer","AttachmentMode":"file-system"}]}`, 400},
		{http.MethodPut, "/v1/volume/csi/data", `{"Volumes":[{"ID":"data","ExternalID":"x","PluginID":"p","AccessMode":"single-node-writer","AttachmentMode":"file-system"}]}`, 200},
		{http.MethodDelete, "/v1/volume/csi/data/detach", "", 400},
		{http.MethodDelete, "/v1/volume/csi/data/detach?node=n", "", 404},
		{http.MethodDelete, "/v1/volume/csi/data?force=perhaps", "", 400},
		{http.MethodPut, "/v1/client/stranger/claims", `{}`, 404},
	} {
		must.Eq(t, test.code, request(t, test.method, server.URL+test.path, test.body).code, must.Sprint(test.method, " ", test.path, " ", test.body))
	}
}

// The reason in a blocked evaluation, for a volume that is missing and for one that another allocation has.
func TestVolumes_Shortages(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	pluginNode(w, 1, "")
	c := w.client()
	result.Read(c.Jobs().Register(volumeJob(), nil)).OK(t)
	why := func() map[string]int {
		plan := result.Read(c.Jobs().Plan(volumeJob(), false, nil)).OK(t)
		if plan.FailedTGAllocs["web"] == nil {
			return nil
		}
		return plan.FailedTGAllocs["web"].ConstraintFiltered
	}
	must.Eq(t, map[string]int{"volume default/data does not exist": 2}, why())
	result.Of(c.CSIVolumes().Register(dataVolume(), nil)).OK(t)
	must.MapEmpty(t, why())
	other := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Copy()
	other.ID = "other"
	w.must(&shims.JobRegister{Job: other})
	w.place(1, w.State().Job(other.Key()), nodeID(1))
	must.Eq(t, map[string]int{
		"volume default/data is claimed by allocation " + string(allocID(1)) + " on node " + string(nodeID(1)) + " (single-node-writer, taken)": 2,
	}, why())
}
