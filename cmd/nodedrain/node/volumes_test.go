package node

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A node shows its storage plugins. Its volumes are read if there may be some.
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
