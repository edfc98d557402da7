package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// An allocation shows its volumes, where its tasks see them, and which are still on its node.
func TestAllocStatus_volumes(t *testing.T) {
	t.Parallel()
	g := &cluster.TaskGroup{
		Name: "web",
		Volumes: []cluster.VolumeRequest{
			{Name: "cache", Source: "cache", PerAlloc: true, Capability: cluster.VolumeCapability{Access: cluster.SingleNodeWriter}},
			{Name: "data", Source: "shared", ReadOnly: true, Capability: cluster.VolumeCapability{Access: cluster.MultiNodeReader}},
		},
		Tasks: []*cluster.Task{
			{Name: "main", VolumeMounts: []cluster.VolumeMount{{Volume: "cache", Destination: "local/cache"}, {Volume: "data", Destination: "/data"}}},
			{Name: "side", VolumeMounts: []cluster.VolumeMount{{Volume: "cache", Destination: "local/c"}}},
		},
	}
	a := wire.NewAllocation(&cluster.Allocation{ID: "0a1b2c3d-4e5f", Name: "web.web[2]", TaskGroup: "web", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{g}}}, "global")
	must.Eq(t, `Name   Volume    Access                  Mode   Mounts
cache  cache[2]  single-node-writer      write  main: local/cache, side: local/c
data   shared    multi-node-reader-only  read   main: /data
`, text(volumeTable(a)))
	must.Nil(t, holdTable(a.VolumeHolds, false))
	wait := wire.TaskWait{For: string(cluster.WaitVolume), Detail: "volume default/shared must be staged"}
	must.Eq(t, "volume: volume default/shared must be staged", taskWait(a, wait, time.Now()))
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	a.VolumeHolds = &wire.VolumeHolds{More: 3, Volumes: []wire.VolumeHold{
		{Namespace: "default", Volume: "shared", AllocID: "0a1b2c3d-4e5f", Path: "/mnt/x", Reason: "must be unpublished; kept busy by process 7 (tail)", Since: wire.NewTime(since)},
		{Namespace: "team", Volume: "other", AllocID: "1a1b2c3d-4e5f"},
	}}
	must.Eq(t, fmt.Sprintf(`Volume      Used By   Since                Waits For                                           Path
shared      0a1b2c3d  %-19s  must be unpublished; kept busy by process 7 (tail)  /mnt/x
team/other  1a1b2c3d  %-19s  -                                                   -
and 3 more  -         %-19s  -                                                   -
`, timeCell(wire.NewTime(since)), "-", "-"), text(holdTable(a.VolumeHolds, false)))
	must.Eq(t, "volume", taskWait(a, wait, time.Now()), must.Sprint("the table says it"))
	must.Nil(t, volumeTable(wire.NewAllocation(&cluster.Allocation{ID: "2a", TaskGroup: "gone", Job: &cluster.Job{}}, "global")))
}

// A node shows its storage plugins. Its volumes are asked for if there may be some.
func TestNodeStatus_storagePlugins(t *testing.T) {
	t.Parallel()
	plain := wire.NewNode(&cluster.Node{})
	must.False(t, mayHaveVolumes(plain, []*wire.Allocation{wire.NewAllocation(&cluster.Allocation{Job: &cluster.Job{}}, "global")}))
	withVolume := wire.NewAllocation(&cluster.Allocation{TaskGroup: "g", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", Volumes: []cluster.VolumeRequest{{Name: "d"}}}}}}, "global")
	must.True(t, mayHaveVolumes(plain, []*wire.Allocation{withVolume}))
	n := wire.NewNode(&cluster.Node{StoragePlugins: []*cluster.StoragePlugin{
		{ID: "disks", Type: cluster.PluginMonolith, Healthy: true, Alloc: "0a1b2c3d-4e5f", Version: "1.2"},
		{ID: "nfs", Type: cluster.PluginNode, HealthDescription: "Probe: no answer"},
	}})
	must.True(t, mayHaveVolumes(n, nil))
	must.Eq(t, `Plugin  Type      Healthy  Allocation  Version  Description
disks   monolith  true     0a1b2c3d    1.2      -
nfs     node      false    <none>      -        Probe: no answer
`, text(nodePluginTable(n, false)))
}

// A volume is detached from the node with a claim on it that a prefix or a name means. The node itself may
// be gone. Regression: the empty prefix meant the only node with a claim.
func TestVolumeDetach_node(t *testing.T) {
	t.Parallel()
	const first, second, other = "aa11-1", "aa11-1-2", "bb22-3"
	var detached string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			detached = r.URL.Query().Get("node") + " " + r.URL.Query().Get("force")
			_, _ = w.Write([]byte("{}"))
			return
		}
		if r.URL.Path == "/v1/nodes" {
			all := []wire.NodeListStub{{ID: other, Name: "rack-7"}, {ID: "dd44-5", Name: "rack-8"}}
			_ = json.NewEncoder(w).Encode(slices.DeleteFunc(all, func(n wire.NodeListStub) bool {
				filter := r.URL.Query().Get("filter")
				return !strings.HasPrefix(n.ID, r.URL.Query().Get("prefix")) || filter != "" && !strings.Contains(filter, n.Name)
			}))
			return
		}
		_ = json.NewEncoder(w).Encode(wire.Volume{ID: "data", Claims: []wire.VolumeClaim{{NodeID: first}, {NodeID: second}, {NodeID: other}, {NodeID: other}}})
	}))
	t.Cleanup(server.Close)
	for given, want := range map[string]string{
		"bb": other + " false", "BB22-3": other + " false", second: second + " false", first: first + " false", "aa": "", "cc": "",
		"rack-7": other + " false", "rack-8": "", "dd44-5": "", "": "", "b": "",
	} {
		detached = ""
		var out bytes.Buffer
		code := run(t.Context(), []string{"volume", "detach", "data", given}, stdio{out: &out, errs: &out, getenv: func(name string) string {
			return map[string]string{client.EnvAddress: server.URL}[name]
		}})
		must.Eq(t, want, detached, must.Sprint(given, &out))
		must.EqOp(t, want == "", code != 0)
	}
}
