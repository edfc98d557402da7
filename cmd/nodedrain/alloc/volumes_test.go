package alloc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/volume"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// An allocation shows its volumes, where its tasks have them, and which are still on its node.
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
`, cli.TimeCell(wire.NewTime(since)), "-", "-"), text(volume.HoldTable(a.VolumeHolds, false)))
	must.Eq(t, "volume", taskWait(a, wait, time.Now()), must.Sprint("the table has the detail"))
	must.Eq(t, 1, strings.Count(text(volumeTable(wire.NewAllocation(&cluster.Allocation{ID: "2a", TaskGroup: "gone", Job: &cluster.Job{}}, "global"))), "\n"))
}

func text(t *cli.Table) string {
	var out strings.Builder
	t.Write(&out)
	return out.String()
}
