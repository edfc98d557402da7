package agent_test

import (
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
)

// The leader calls the controller of a node whose session another server holds, and the answer is in the
// claim.
func TestControllers_overTheSessionOfAnotherServer(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	eventually(t, "the cluster version", func() bool {
		return leader.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfVolumes
	})
	n := testNode(1)
	n.StoragePlugins = []*cluster.StoragePlugin{{ID: "team/disks", Type: cluster.PluginMonolith, Healthy: true, NodeID: "ext", Attaches: true}}
	reach(t, w.others(leader)[0], n)
	mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	writer := leader.Backend().Writer
	_, err := writer.RegisterVolume(t.Context(), &cluster.Volume{ID: "data", ExternalID: "disk-1", Plugin: "team/disks", Capabilities: []cluster.VolumeCapability{mode}})
	must.NoError(t, err)
	job := clustertest.Job("web", cluster.JobService, 1)
	job.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: mode}}
	_, err = writer.RegisterJob(t.Context(), job, nil)
	must.NoError(t, err)
	var claims []*cluster.VolumeClaim
	eventually(t, "the volume is attached", func() bool {
		claims = slices.Collect(leader.Server().Store().Snapshot().Claims())
		return len(claims) == 1 && claims[0].Attached
	})
	must.Eq(t, map[string]string{"asked": "POST /v1/internal/storage/team/disks/attach disk-1 ext"}, claims[0].PublishContext)
}
