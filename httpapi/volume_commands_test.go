package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/api/contexts"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// storageCluster has two nodes with the plugin "disks", the volumes data, data2 and other of two
// namespaces and two plugins, and an allocation on the first node that writes to data.
func storageCluster(t *testing.T) (*fixture, *httptest.Server, *api.Client) {
	t.Helper()
	w := newFixture(t).nodes(3)
	w.must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	w.place(9, w.job("disks", cluster.JobSystem, 1), nodeID(1))
	pluginNode(w, 1, allocID(9))
	pluginNode(w, 2, "")
	server := w.serve(httpapi.Options{})
	c := result.Of(api.NewClient(&api.Config{Address: server.URL})).OK(t)
	for _, k := range []struct{ namespace, id, plugin string }{{"default", "data", "disks"}, {"default", "data2", "nfs"}, {"team", "other", "disks"}} {
		v := dataVolume()
		v.ID, v.PluginID = k.id, k.plugin
		result.Of(c.CSIVolumes().Register(v, &api.WriteOptions{Namespace: k.namespace})).OK(t)
	}
	result.Read(c.Jobs().Register(volumeJob(), nil)).OK(t)
	w.place(1, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}), nodeID(1))
	return w, server, c
}

func volumeIDs(list []*api.CSIVolumeListStub) string {
	var ids []string
	for _, v := range list {
		ids = append(ids, v.ID)
	}
	return strings.Join(ids, " ")
}

// What "nomad volume status", "nomad node status" and "nomad plugin status" request. The client sorts lists
// by age, the newest first.
func TestVolumeCommands_lists(t *testing.T) {
	t.Parallel()
	_, _, c := storageCluster(t)
	for _, test := range []struct {
		q    *api.QueryOptions
		want string
	}{
		{nil, "data2 data"},
		{&api.QueryOptions{Namespace: "*"}, "other data2 data"},
		{&api.QueryOptions{Namespace: "team"}, "other"},
		{&api.QueryOptions{Prefix: "data2"}, "data2"},
		{&api.QueryOptions{Prefix: "d", Namespace: "*"}, "data2 data"},
		{&api.QueryOptions{Prefix: "none"}, ""},
		{&api.QueryOptions{Namespace: "*", Params: map[string]string{"plugin_id": "disks"}}, "other data"},
		{&api.QueryOptions{Params: map[string]string{"plugin_id": "none"}}, ""},
		{&api.QueryOptions{Params: map[string]string{"node_id": string(nodeID(1))}}, "data"},
		{&api.QueryOptions{Params: map[string]string{"node_id": "stranger"}}, ""},
		{&api.QueryOptions{Filter: `PluginID == "nfs"`}, "data2"},
	} {
		list, meta, err := c.CSIVolumes().List(test.q)
		must.NoError(t, err)
		must.Eq(t, test.want, volumeIDs(list), must.Sprintf("%+v", test.q))
		must.Positive(t, meta.LastIndex)
	}
	list, meta, err := c.CSIVolumes().List(&api.QueryOptions{PerPage: 1})
	must.NoError(t, err)
	must.Eq(t, "data", volumeIDs(list))
	list, meta, err = c.CSIVolumes().List(&api.QueryOptions{PerPage: 1, NextToken: meta.NextToken})
	must.NoError(t, err)
	must.Eq(t, "data2", volumeIDs(list))
	must.Eq(t, "", meta.NextToken)
	hosts := result.Read(c.HostVolumes().List(&api.HostVolumeListRequest{}, nil)).OK(t)
	must.SliceEmpty(t, hosts)

	onNode := result.Of(c.Nodes().CSIVolumes(string(nodeID(1)), &api.QueryOptions{Namespace: "*"})).OK(t)
	must.Eq(t, "data", volumeIDs(onNode))
	onNode = result.Of(c.Nodes().CSIVolumes(string(nodeID(2)), nil)).OK(t)
	must.SliceEmpty(t, onNode)

	plugins, meta, err := c.CSIPlugins().List(&api.QueryOptions{Prefix: "di"})
	must.NoError(t, err)
	must.Len(t, 1, plugins)
	must.Eq(t, api.CSIPluginListStub{
		ID: "disks", Provider: "disks.example", ControllerRequired: true, ControllersHealthy: 2, ControllersExpected: 2, NodesHealthy: 2, NodesExpected: 2,
		CreateIndex: plugins[0].CreateIndex, ModifyIndex: plugins[0].ModifyIndex,
	}, *plugins[0])
	must.Positive(t, meta.LastIndex)
	plugins = result.Read(c.CSIPlugins().List(&api.QueryOptions{Prefix: "x"})).OK(t)
	must.SliceEmpty(t, plugins)
	for _, what := range []struct {
		context contexts.Context
		want    []string
	}{{contexts.Plugins, []string{"disks"}}, {contexts.Volumes, []string{"data", "data2"}}} {
		found := result.Read(c.Search().PrefixSearch("d", what.context, nil)).OK(t)
		must.Eq(t, map[contexts.Context][]string{what.context: what.want}, found.Matches)
	}
}

// What the commands request of one volume and one plugin, and what they are refused.
func TestVolumeCommands_one(t *testing.T) {
	t.Parallel()
	w, server, c := storageCluster(t)
	v, meta, err := c.CSIVolumes().Info("data", &api.QueryOptions{Namespace: "default"})
	must.NoError(t, err)
	must.Positive(t, meta.LastIndex)
	must.True(t, v.Schedulable)
	must.Eq(t, "disks.example 1.2.3 2 2", v.Provider+" "+v.ProviderVersion+" "+strings.Repeat("2 ", v.NodesHealthy/2)+"2")
	plugin := result.Read(c.CSIPlugins().Info("disks", nil)).OK(t)
	must.Eq(t, string(allocID(9)), plugin.Allocations[0].ID)

	// "alloc status" reads the job of the allocation, and the volume in the namespace of the allocation.
	alloc := result.Read(c.Allocations().Info(string(allocID(1)), nil)).OK(t)
	volume := alloc.GetTaskGroup().Volumes["d"]
	must.Eq(t, api.VolumeRequest{Name: "d", Type: "csi", Source: "data", AccessMode: "single-node-writer", AttachmentMode: "file-system", MountOptions: volume.MountOptions}, *volume)
	must.Eq(t, []string{"noatime"}, volume.MountOptions.MountFlags)
	result.Read(c.CSIVolumes().Info(volume.Source, &api.QueryOptions{Namespace: alloc.Namespace})).OK(t)

	// "job plan" shows the volumes, and the mounts of tasks.
	changed := volumeJob()
	changed.TaskGroups[0].Volumes["d"].Source = "data2"
	changed.TaskGroups[0].Volumes["d"].MountOptions.MountFlags = nil
	changed.TaskGroups[0].Tasks[0].VolumeMounts[0].Destination = new("/elsewhere")
	plan := result.Read(c.Jobs().Plan(changed, true, nil)).OK(t)
	group := plan.Diff.TaskGroups[0]
	must.Eq(t, "Edited", group.Type)
	must.Eq(t, []*api.ObjectDiff{{
		Type: "Edited", Name: "Volume", Fields: []*api.FieldDiff{{Type: "Edited", Name: "Source", Old: "data", New: "data2"}},
		Objects: []*api.ObjectDiff{{Type: "Edited", Name: "MountOptions", Fields: []*api.FieldDiff{{Type: "Deleted", Name: "MountFlags", Old: "noatime"}}, Objects: []*api.ObjectDiff{}}},
	}}, group.Objects)
	must.Eq(t, []*api.ObjectDiff{{
		Type: "Edited", Name: "VolumeMount", Fields: []*api.FieldDiff{{Type: "Edited", Name: "Destination", Old: "/data", New: "/elsewhere"}}, Objects: []*api.ObjectDiff{},
	}}, group.Tasks[0].Objects)

	for _, test := range []struct {
		method, path string
		code         int
		text         string
	}{
		{"GET", "/v1/volume/csi/none", 404, "volume not found"},
		{"GET", "/v1/volume/csi/data?namespace=team", 404, "volume not found"},
		{"GET", "/v1/plugin/csi/none", 404, "plugin not found"},
		{"DELETE", "/v1/volume/csi/none?force=false", 404, "volume not found"},
		{"DELETE", "/v1/volume/csi/data?force=false", 409, "volume in use"},
		{"DELETE", "/v1/volume/csi/data/detach?node=" + string(nodeID(2)), 404, "volume is not claimed on the node"},
		{"DELETE", "/v1/volume/csi/data/detach", 400, "missing the parameter node"},
		{"DELETE", "/v1/volume/csi/data?force=perhaps", 400, "force"},
		{"GET", "/v1/volumes?per_page=many", 400, "per_page"},
		{"GET", "/v1/volumes?filter=(", 400, "filter expression"},
		{"GET", "/v1/plugins?filter=(", 400, "filter expression"},
	} {
		a := request(t, test.method, server.URL+test.path, "")
		must.Eq(t, test.code, a.code, must.Sprint(test.method, " ", test.path, " ", a.body))
		must.StrContains(t, a.body, test.text)
	}

	// What the claim waits for.
	waits := func() string {
		v := decode[wire.Volume](t, request(t, "GET", server.URL+"/v1/volume/csi/data", ""))
		return v.Claims[0].Waits
	}
	claim := cluster.ClaimKey{Volume: dataKey, Alloc: allocID(1)}
	must.Eq(t, "a controller must attach the volume to the node", waits())
	w.must(&shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: w.Now(), Changes: []cluster.ClaimChange{{Claim: claim, Node: nodeID(1), Cause: cluster.CauseAttached}}}})
	must.Eq(t, "", waits())

	// "volume detach" after the end of an allocation whose volume could not be unmounted.
	hold := &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "default", Volume: "data", Alloc: allocID(1), Reason: "must be unpublished; kept busy by process 7 (tail)", Since: noon}}}
	w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: allocID(1), Node: nodeID(1), ClientStatus: cluster.ClientComplete, VolumeHolds: hold}}})
	must.NoError(t, c.CSIVolumes().Detach("data", string(nodeID(1)), nil))
	must.Eq(t, "must be unpublished; kept busy by process 7 (tail)", waits())
	w.must(&shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: w.Now(), Changes: []cluster.ClaimChange{{Claim: claim, Node: nodeID(1), Cause: cluster.CauseNode}}}})
	must.Eq(t, "a controller must detach the volume from the node", waits())
	for n := range 2 {
		node := w.State().Node(nodeID(n + 1)).Copy()
		node.StoragePlugins[0].Healthy = false
		w.must(&shims.NodeRegister{At: w.Now(), Node: node})
	}
	must.Eq(t, "a controller must detach the volume from the node, and no healthy controller of its plugin attaches volumes", waits())
}

// A registration with all fields of a file that the command has parsed: an unknown one is no error, and the
// required topologies state where the volume is.
func TestVolumeCommands_register(t *testing.T) {
	t.Parallel()
	_, server, c := storageCluster(t)
	v := dataVolume()
	v.ID, v.Namespace, v.ExternalID = "zoned", "team", "vol-7"
	v.MountOptions = &api.CSIMountOptions{FSType: "ext4", MountFlags: []string{"noatime"}}
	v.Parameters, v.Context = map[string]string{"pool": "a"}, map[string]string{"lun": "7"}
	v.RequestedCapacityMin, v.RequestedCapacityMax, v.CloneID = 1, 2, "vol-0"
	v.RequestedTopologies = &api.CSITopologyRequest{
		Required:  []*api.CSITopology{{Segments: map[string]string{"zone": "a"}}},
		Preferred: []*api.CSITopology{{Segments: map[string]string{"zone": "b"}}},
	}
	answer, meta, err := c.CSIVolumes().RegisterOpts(&api.CSIVolumeRegisterRequest{Volumes: []*api.CSIVolume{v}}, &api.WriteOptions{Namespace: "default"})
	must.NoError(t, err)
	must.Positive(t, meta.LastIndex)
	must.Eq(t, "zoned", answer.Volumes[0].ID)
	must.Eq(t, "", answer.Warnings)
	must.Eq(t, api.CSISecrets{"key": "[redacted]"}, answer.Volumes[0].Secrets)
	read := result.Read(c.CSIVolumes().Info("zoned", &api.QueryOptions{Namespace: "team"})).OK(t)
	must.Eq(t, []*api.CSITopology{{Segments: map[string]string{"zone": "a"}}}, read.Topologies)
	must.Eq(t, v.MountOptions, read.MountOptions)
	must.Eq(t, v.Context, read.Context)

	// Two volumes that are one storage have claims of their own.
	v.ExternalID = "vol-1"
	answer = result.Read(c.CSIVolumes().RegisterOpts(&api.CSIVolumeRegisterRequest{Volumes: []*api.CSIVolume{v}}, nil)).OK(t)
	must.Eq(t, `the external id "vol-1" of plugin "disks" is also that of default/data, team/other: a claim of one volume does not exclude claims of another`, answer.Warnings)

	// These commands need a controller that creates volumes. They are answered with 501.
	for _, path := range []string{"PUT /v1/volume/csi/data/create", "DELETE /v1/volume/csi/data/delete", "GET /v1/volumes/external?plugin_id=disks", "GET /v1/volumes/snapshot", "PUT /v1/volume/host/create"} {
		method, path, _ := strings.Cut(path, " ")
		must.Eq(t, http.StatusNotImplemented, request(t, method, server.URL+path, `{"Volumes":[]}`).code, must.Sprint(path))
	}
}

// A reader of one volume is woken by its claims and by a change of what the answer has of them, and not by
// other volumes. A claim that ends while no request waits is not missed.
func TestVolumeCommands_blocking(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{MaxWait: time.Hour}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		w.must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
		pluginNode(w, 1, "")
		for _, id := range []cluster.VolumeID{"data", "data2"} {
			w.must(&shims.VolumeRegister{At: w.Now(), Volume: &cluster.Volume{
				ID: id, ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}},
			}})
		}
		jobOf := func(id string, volume cluster.VolumeID) *cluster.Job {
			j := w.job(id, cluster.JobService, 2).Copy()
			j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{
				Name: "d", Type: cluster.VolumeCSI, Source: volume,
				Capability: cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem},
			}}
			return w.Job(j)
		}
		const path = "/v1/volume/csi/data"
		index := func() uint64 { return w.reads(h, path).answer.index(t) }

		r := w.reads(h, at(path, index()))
		must.True(t, r.waits())
		w.place(1, jobOf("other", "data2"), nodeID(1))
		w.report(1, cluster.ClientComplete)
		must.True(t, r.waits(), must.Sprint("claims of another volume"))
		web := jobOf("web", "data")
		w.place(2, web, nodeID(1))
		must.False(t, r.waits(), must.Sprint("a new claim"))
		w.place(3, web, nodeID(1))
		w.drain(nodeID(1), cluster.DrainSpec{})

		before := index()
		r = w.reads(h, at(path, before))
		must.True(t, r.waits())
		w.mark(3, cluster.MarkPaced)
		must.False(t, r.waits(), must.Sprint("the answer lists the allocation"))

		before = index()
		w.report(2, cluster.ClientComplete) // its claim is not the newest, and leaves no row
		must.False(t, w.reads(h, at(path, before)).waits(), must.Sprint("a claim has ended between two requests"))
	})
}

// A reader without the right to write sees no mount options, contexts, secrets or texts of plugins, and the
// secrets are for the node's own token alone.
func TestVolumeCommands_redaction(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	pluginNode(w, 1, "")
	writer := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	flags := &cluster.MountOptions{Flags: []string{"password=hunter-flag"}}
	w.must(&shims.VolumeRegister{At: w.Now(), Volume: &cluster.Volume{
		ID: "data", ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{writer}, MountOptions: flags,
		Secrets: map[string]string{"key": "hunter-secret"}, Context: map[string]string{"lun": "hunter-context"}, Parameters: map[string]string{"pool": "hunter-parameter"},
	}})
	j := w.job("web", cluster.JobService, 1).Copy()
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: writer, MountOptions: flags}}
	w.place(1, w.Job(j), nodeID(1))
	w.must(&shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: w.Now(), Changes: []cluster.ClaimChange{{
		Claim: cluster.ClaimKey{Volume: dataKey, Alloc: allocID(1)}, Node: nodeID(1), Cause: cluster.CauseAttached, PublishContext: map[string]string{"device": "hunter-publish"},
	}}}})
	w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
		Alloc: allocID(1), Node: nodeID(1), ClientStatus: cluster.ClientRunning,
		VolumeHolds: &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "default", Volume: "data", Alloc: allocID(1), Reason: "hunter-reason", Since: noon}}},
	}}})
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	shown := func(path, token string) []string {
		a := request(t, "GET", base+path, "", "X-Nomad-Token", token)
		if a.code == http.StatusForbidden {
			return []string{"forbidden"}
		}
		must.Eq(t, 200, a.code, must.Sprint(path, a.body))
		found := []string{}
		for _, what := range []string{"flag", "secret", "context", "parameter", "publish", "reason"} {
			if strings.Contains(a.body, "hunter-"+what) {
				found = append(found, what)
			}
		}
		return found
	}
	nothing, volume := []string{}, "/v1/volume/csi/data"
	onNode, alloc := "/v1/node/"+string(nodeID(1))+"/volumes", "/v1/allocation/"+string(allocID(1))
	for _, test := range []struct {
		path           string
		reader, writer []string
	}{
		{volume, nothing, []string{"flag", "context", "parameter", "reason"}},
		{"/v1/volumes", nothing, nothing},
		{"/v1/volumes?filter=" + "MountOptions+is+not+empty", nil, nil},
		{"/v1/plugins", nothing, nothing},
		{"/v1/plugin/csi/disks", nothing, nothing},
		{"/v1/node/" + string(nodeID(1)), nothing, nothing},
		{alloc, nothing, []string{"flag", "reason"}},
		{"/v1/allocations", nothing, nothing},
		{"/v1/node/" + string(nodeID(1)) + "/allocations", nothing, []string{"flag", "reason"}},
		{"/v1/job/web", nothing, []string{"flag"}},
		{"/v1/job/web/versions", nothing, []string{"flag"}},
		{onNode, []string{"forbidden"}, []string{"flag", "context", "parameter"}},
	} {
		if test.reader == nil { // a list has no field that a filter could read
			must.Eq(t, 400, request(t, "GET", base+test.path, "", "X-Nomad-Token", "reader-token").code)
			continue
		}
		must.Eq(t, test.reader, shown(test.path, "reader-token"), must.Sprint("a reader of ", test.path))
		must.Eq(t, test.writer, shown(test.path, "writer-token"), must.Sprint("a writer of ", test.path))
	}
	must.Eq(t, []string{"flag", "secret", "context", "parameter", "publish"}, shown(onNode, secretOf(nodeID(1))))
	must.Eq(t, []string{"forbidden"}, shown(onNode, secretOf(nodeID(2))))
}
