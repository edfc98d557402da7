package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// volumeCases are the faults of storage plugins and of claims. The volume of n1's allocation is
// mounted from the start, so the first call unmounts it.
func volumeCases() []faultCase {
	later := func(least, most time.Duration) func(t *testing.T, plain, struck *fixture) {
		return func(t *testing.T, plain, struck *fixture) {
			must.Positive(t, plain.reported("n1", ended))
			must.Between(t, least, struck.reported("n1", ended)-plain.reported("n1", ended), most)
			must.Eq(t, plain.claims(), struck.claims())
		}
	}
	const five = 5 * time.Second
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.StorageFail, On: "n1"}, keeps: terms | applied | ending, check: later(100*time.Millisecond, time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.StorageSlow, On: "n1", Delay: exactly(five)}, keeps: terms | applied | ending, check: later(five, five+time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.StorageHang, On: "n1", Delay: exactly(five)}, keeps: terms | applied | ending, check: later(five, five+time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.StorageCrash, On: "n1"}, keeps: terms | applied | ending, check: later(10*time.Second, 30*time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.MountBusy, On: "n1", Delay: exactly(five)}, keeps: terms | applied | ending, check: later(five, 2*five),
	}, {
		fault: scenario.Fault{Name: scenario.ClaimLose, On: "n1"}, keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			releases := func(w *fixture) (n int) {
				for _, e := range w.entries {
					if _, is := e.Message.(*shims.ClaimUpdate); is {
						n++
					}
				}
				return n
			}
			must.Eq(t, releases(plain), releases(struck)) // the client reads that the claim is released
			must.Eq(t, plain.claims(), struck.claims())
		},
	}}
}

// claims are the nodes with claims at the end of a run.
func (w *fixture) claims() (on []cluster.NodeID) {
	for c := range w.Truth().Claims() {
		on = append(on, c.Node)
	}
	return on
}

// disks is the id of the storage plugin.
const disks cluster.PluginID = "disks"

// store gives the world storage plugins.
func store(o *world.Options) {
	o.Storage = &world.Storage{Plugin: func(cluster.PluginID) setting.Storage { return setting.Storage{Stages: true} }}
}

// placeVolume writes a volume, and a running storage plugin on each node.
func (w *fixture) placeVolume(t *testing.T, on ...cluster.NodeID) {
	t.Helper()
	j := world.NewJob(cluster.JobSystem, "disks", 1)
	j.TaskGroups[0].Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: disks, Type: cluster.PluginNode}
	j.Canonicalize()
	allocs := make([]*cluster.Allocation, len(on))
	for i, node := range on {
		allocs[i] = w.Setup.NewAlloc(j, "disks", 0, node)
	}
	must.NoError(t, w.Setup.Place(world.Placement{Job: j, Allocs: allocs}))
	must.NoError(t, w.Setup.Write(func(txn *statestore.Txn) error {
		for _, a := range allocs {
			n := txn.Node(a.NodeID).Copy()
			p := setting.Storage{Stages: true}.Report(j.TaskGroups[0].Tasks[0].CSIPlugin, a.ID, a.NodeID, true, world.Epoch)
			n.StoragePlugins, n.HoldLimit, n.VolumeAllowance = []*cluster.StoragePlugin{p}, 10*time.Minute, 10*time.Minute
			if err := txn.UpsertNode(n, world.Epoch); err != nil {
				return err
			}
		}
		return statestore.UpsertVolume(txn, &cluster.Volume{
			Namespace: cluster.DefaultNamespace, ID: "data", Name: "data", ExternalID: "ext", Plugin: disks, Capabilities: []cluster.VolumeCapability{shared},
		}, world.Epoch)
	}))
}

// shared are the modes in which allocations use the volume.
var shared = cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}
