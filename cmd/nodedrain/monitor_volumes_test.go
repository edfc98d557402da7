package main

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
)

// storageNode has a storage plugin, and one job may use its volume.
const storageNode = "570a0000-0000-4000-8000-00000000000e"

// useVolume registers the node, a volume, and a job whose allocation on the node uses it and does not leave by
// itself.
func useVolume(ctx context.Context, t *testing.T, c *scriptCluster) (key cluster.JobKey) {
	t.Helper()
	state := func() bool { return c.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfVolumes }
	must.NoError(t, c.await(ctx, func() (bool, error) { return state(), nil }))
	n := scriptNodes()[0]
	n.ID, n.SecretID, n.Name, n.NodeClass = storageNode, "secret of storage", "storage", "storage"
	n.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Healthy: true, NodeID: "ext"}}
	n.Canonicalize()
	must.NoError(t, insist(ctx, func() error { _, err := c.writer.RegisterNode(ctx, n); return err }))
	mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	_, err := c.writer.RegisterVolume(ctx, &cluster.Volume{ID: "data", Namespace: "team", ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode}})
	must.NoError(t, err)
	j := scriptJobs()[3] // max_parallel is 0
	j.ID, j.Namespace, j.TaskGroups[0].Count, j.TaskGroups[0].NodeClasses = "writer", "team", 1, []string{"storage"}
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: mode}}
	j.Canonicalize()
	_, err = c.writer.RegisterJob(ctx, j, cluster.JobRegistration{})
	must.NoError(t, err)
	must.NoError(t, c.await(ctx, func() (bool, error) {
		for a := range c.Server().Store().Snapshot().AllocsByJob(j.Key()) {
			if a.ClientStatus == cluster.ClientRunning {
				return true, nil
			}
		}
		return false, nil
	}))
	return j.Key()
}

// A drain ends, and a volume is still on the node: the client cannot unmount it. A script must not turn the
// machine off, so the exit code is not zero. When an operator has freed the volume it is zero.
func TestMonitor_volumesLeft(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	key := useVolume(ctx, t, c)
	const enable = "node drain -enable -yes -no-deadline "
	end := func() {
		for a := range c.Server().Store().Snapshot().AllocsByJob(key) {
			held := &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "team", Volume: "data", Alloc: a.ID, Reason: "it is busy", Since: time.Now()}}}
			report := cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientComplete, VolumeHolds: held, At: time.Now()}
			_, err := c.writer.ReportAllocs(ctx, []cluster.AllocReport{report})
			must.NoError(t, err)
		}
	}
	code, out, errs := watched(ctx, c, enable+storageNode, "Waiting: 1 of team/writer.db: no paced moves", end)
	must.EqOp(t, int(drain.ExitVolumesLeft), code, must.Sprint(out, errs))
	left := regexp.MustCompile(`\n\S+: Still on node "` + storageNode + `": volume team/data of allocation \S+: it is busy\n`)
	must.RegexMatch(t, left, out)

	code, out, errs = watched(ctx, c, enable+storageNode, "drain strategy set", func() {})
	must.EqOp(t, int(drain.ExitVolumesLeft), code, must.Sprint(out, errs))
	must.RegexMatch(t, left, out)

	_, err := c.writer.DetachVolume(ctx, cluster.VolumeKey{Namespace: "team", ID: "data"}, storageNode, true)
	must.NoError(t, err)
	code, out, errs = watched(ctx, c, enable+storageNode, "drain strategy set", func() {})
	must.Zero(t, code, must.Sprint(out, errs))
	must.StrNotContains(t, out, "Still on node")
}
