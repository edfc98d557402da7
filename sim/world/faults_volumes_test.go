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

// five is the delay of the faults.
const five = 5 * time.Second

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
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.StorageFail, On: "n1"}, keeps: terms | applied | ending, check: later(100*time.Millisecond, time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.StorageSlow, On: "n1", Delay: exactly(five)}, keeps: terms | applied | ending, check: later(five, five+time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.StorageHang, On: "n1", Delay: exactly(five)}, keeps: terms | applied | ending, check: later(five, five+time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.StorageCrash, On: "n1"}, keeps: terms | applied | ending, check: later(10*time.Second, 30*time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.ControllerHang, On: "n1", Delay: exactly(five)}, keeps: terms | applied | ending, check: attaches(false), setup: sampled,
	}, {
		fault: scenario.Fault{Name: scenario.ControllerMute, On: "n1", Delay: exactly(five)}, keeps: terms | applied | ending, check: attaches(true), setup: sampled,
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

// sampled looks at the attachments while the call that attaches the volume to n4 has no answer yet.
func sampled(_ *testing.T, w *fixture) {
	w.at(drains+5*time.Second, func() {
		for _, at := range w.Attachments() {
			w.attached = w.attached || at.Node == "n4" && at.Attached
		}
	})
}

// attaches checks that the replacement waits for the answer of the controller, and whether the call
// took effect meanwhile.
func attaches(early bool) func(t *testing.T, plain, struck *fixture) {
	return func(t *testing.T, plain, struck *fixture) {
		answered := func(w *fixture) time.Duration {
			return whenThat(w, func(m *shims.ClaimUpdate) bool {
				return m.Changes[0].Cause == cluster.CauseAttached && m.Changes[0].Node == "n4"
			})
		}
		must.Positive(t, answered(plain))
		must.Between(t, five, answered(struck)-answered(plain), five+time.Second)
		must.True(t, plain.attached)
		must.EqOp(t, early, struck.attached)
		must.Eq(t, plain.claims(), struck.claims())
	}
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

// store gives the world storage plugins, with controllers if the fault needs them.
func store(o *world.Options, of scenario.FaultKind) setting.Storage {
	can := setting.Storage{Stages: true, Controllers: of.Name == scenario.ControllerHang || of.Name == scenario.ControllerMute}
	o.Storage = &world.Storage{Plugin: func(cluster.PluginID) setting.Storage { return can }}
	return can
}

// placeVolume writes a volume, and a running storage plugin on each node.
func (w *fixture) placeVolume(t *testing.T, can setting.Storage, on ...cluster.NodeID) {
	t.Helper()
	j := world.NewJob(cluster.JobSystem, "disks", 1)
	j.TaskGroups[0].Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: disks, Type: cluster.PluginNode}
	if can.Controllers {
		j.TaskGroups[0].Tasks[0].CSIPlugin.Type = cluster.PluginMonolith
	}
	j.Canonicalize()
	allocs := make([]*cluster.Allocation, len(on))
	for i, node := range on {
		allocs[i] = w.Setup.NewAlloc(j, "disks", 0, node)
	}
	must.NoError(t, w.Setup.Place(world.Placement{Job: j, Allocs: allocs}))
	must.NoError(t, w.Setup.Write(func(txn *statestore.Txn) error {
		for _, a := range allocs {
			n := txn.Node(a.NodeID).Copy()
			p := can.Report(j.TaskGroups[0].Tasks[0].CSIPlugin, a.ID, a.NodeID, true, world.Epoch)
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
