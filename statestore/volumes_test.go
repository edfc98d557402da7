package statestore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var single = cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
var shared = cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}

// dataKey is the volume of the tests.
var dataKey = cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: "data"}

func dataVolume() *cluster.Volume {
	return &cluster.Volume{ID: "data", ExternalID: "vol-1", Plugin: "disks", Capabilities: []cluster.VolumeCapability{single, shared}}
}

// volumeWorld has a volume, and nodes with its plugin. If attaches is set, a controller attaches
// volumes.
func volumeWorld(t *testing.T, attaches bool, nodes ...cluster.NodeID) *world {
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfVolumes) })
	for _, id := range nodes {
		n := &cluster.Node{ID: id, Status: cluster.NodeReady, StoragePlugins: []*cluster.StoragePlugin{{
			ID: "disks", Type: cluster.PluginMonolith, Healthy: true, NodeID: "machine-" + string(id), Attaches: attaches,
		}}}
		w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(n, w.now)) })
	}
	w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertVolume(dataVolume(), w.now)) })
	return w
}

// volumeJob returns a job that uses the volume in the modes.
func volumeJob(c cluster.VolumeCapability) *cluster.Job {
	j := serviceJob("web", 2)
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: c}}
	return j
}

func (w *world) claim(alloc string) *cluster.VolumeClaim {
	return w.snap().WorkView().Claim(cluster.ClaimKey{Volume: dataKey, Alloc: cluster.AllocID(alloc)})
}

// claimStates are the claims of the volume as "allocation: state", those that write first.
func (w *world) claimStates() (all []string) {
	for c := range w.snap().ClaimsOfVolume(dataKey) {
		all = append(all, fmt.Sprintf("%s: %s", c.Alloc, c.State))
	}
	return all
}

// change applies one change of a claim of the volume, and returns why it was refused.
func (w *world) change(alloc string, n cluster.NodeID, cause cluster.ClaimCause) (why string) {
	ch := cluster.ClaimChange{Claim: cluster.ClaimKey{Volume: dataKey, Alloc: cluster.AllocID(alloc)}, Node: n, Cause: cause}
	if cause == cluster.CauseAttached {
		ch.PublishContext = map[string]string{"device": "/dev/x"}
	}
	w.write(func(x *statestore.Txn) {
		for _, r := range x.UpdateClaims(&cluster.ClaimUpdate{At: w.now, Changes: []cluster.ClaimChange{ch}}) {
			why = r.Why
		}
	})
	return why
}

func (w *world) detach(n cluster.NodeID, force bool) (err error) {
	w.write(func(x *statestore.Txn) { _, err = x.DetachVolume(dataKey, n, force, w.now) })
	return err
}

// A claim is created with its allocation, and deleted when the client has ended the allocation.
func TestClaim_FromPlacementToReport(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	w.place(w.job(volumeJob(single)), "n1", nil, "a")
	c := w.claim("a")
	must.Eq(t, &cluster.VolumeClaim{
		Volume: dataKey, Alloc: "a", Node: "n1", Mode: cluster.ClaimWrite, Capability: single, ExternalNodeID: "machine-n1",
		CreateIndex: w.index, ModifyIndex: w.index,
	}, c)
	w.stop("a")
	must.Eq(t, []string{"a: taken"}, w.claimStates())
	w.report(cluster.ClientComplete, "a")
	must.SliceEmpty(t, w.claimStates())
	must.Eq(t, w.index, w.snap().WorkView().CapacityIndex(), must.Sprint("a blocked evaluation is retried"))
}

// When a controller attaches the volume, the last claim on each node waits for the controller.
func TestClaim_Controller(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, true, "n1", "n2")
	j := w.job(volumeJob(shared))
	w.place(j, "n1", nil, "a", "b")
	w.place(j, "n2", nil, "c")
	must.True(t, w.claim("a").WaitsForController())
	must.Eq(t, "", w.change("a", "n1", cluster.CauseAttached))
	must.False(t, w.claim("a").WaitsForController())
	must.Eq(t, map[string]string{"device": "/dev/x"}, w.claim("a").PublishContext)
	must.Eq(t, "its node may still use the volume", w.change("a", "n1", cluster.CauseDetached))

	w.report(cluster.ClientComplete, "a")
	must.Eq(t, []string{"b: taken", "c: taken"}, w.claimStates(), must.Sprint("b still uses the volume on n1"))
	w.report(cluster.ClientComplete, "b")
	must.Eq(t, []string{"b: node detached", "c: taken"}, w.claimStates())
	must.Eq(t, "it waits for no controller", w.change("b", "n1", cluster.CauseAttached))
	must.Eq(t, "", w.change("b", "n2", cluster.CauseDetached))
	must.Eq(t, []string{"b: node detached", "c: taken"}, w.claimStates(), must.Sprint("a change of another node is ignored"))
	must.Eq(t, "", w.change("b", "n1", cluster.CauseDetached))
	must.Eq(t, "", w.change("b", "n1", cluster.CauseDetached))
	must.Eq(t, []string{"c: taken"}, w.claimStates())
}

// A volume that the client could not unmount stays claimed after its allocation has ended, until
// the client reports that it is off the node.
func TestClaim_HeldAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	w.place(w.job(volumeJob(single)), "n1", nil, "a")
	holds := &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{
		Namespace: dataKey.Namespace, Volume: dataKey.ID, Alloc: "a", Path: "/mnt", Reason: strings.Repeat("busy ", 200), Since: w.now,
	}}}
	w.write(func(x *statestore.Txn) {
		x.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: "a", Node: "n1", ClientStatus: cluster.ClientFailed, VolumeHolds: holds, At: w.now}}, time.Time{})
	})
	must.Eq(t, []string{"a: unpublishing"}, w.claimStates())
	must.Eq(t, 1, w.snap().Alloc("a").VolumeHolds.Count())
	must.StrHasPrefix(t, "busy ", w.snap().Alloc("a").VolumeHolds.Volumes[0].Reason)
	must.Eq(t, cluster.MaxTaskEventBytes, len(w.snap().Alloc("a").VolumeHolds.Volumes[0].Reason))
	must.Eq(t, "", w.change("a", "n1", cluster.CauseNode))
	must.SliceEmpty(t, w.claimStates())
}

// Regression: the client unmounts left volumes after the end of the allocation, and reports this,
// but the row kept the path and the process. Nothing else of the row changes. Such a report frees
// no claim, because the client may have lost its records and not have found yet what is mounted.
func TestClaim_ReportAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	w.place(w.job(volumeJob(single)), "n1", nil, "a")
	w.reports(busy(w, "a"))
	ended := w.snap().Alloc("a")
	must.Eq(t, 1, ended.VolumeHolds.Count())
	report := func(s cluster.ClientStatus, holds *cluster.VolumeHolds) *cluster.Allocation {
		w.reports(cluster.AllocReport{
			Alloc: "a", Node: "n1", ClientStatus: s, ClientDescription: "late", VolumeHolds: holds, At: w.now,
			TaskStates: &cluster.TaskStates{}, Healthy: pointer(false), HealthyAt: w.now,
		})
		return w.snap().Alloc("a")
	}
	must.Eq(t, ended, report(cluster.ClientFailed, nil), must.Sprint("a report without volumes"))
	must.Eq(t, ended, report(cluster.ClientFailed, ended.VolumeHolds), must.Sprint("the same volumes"))
	must.Eq(t, ended, report(cluster.ClientComplete, &cluster.VolumeHolds{}), must.Sprint("another final status"))
	must.Eq(t, ended, report(cluster.ClientRunning, &cluster.VolumeHolds{}), must.Sprint("it does not run again"))

	want := ended.Copy()
	want.VolumeHolds = nil
	after := report(cluster.ClientFailed, &cluster.VolumeHolds{})
	want.ModifyIndex = w.index
	must.Eq(t, want, after)
	must.Eq(t, []string{"a: unpublishing"}, w.claimStates())
	must.Eq(t, "", w.change("a", "n1", cluster.CauseNode))
	must.SliceEmpty(t, w.claimStates())
}

// A purge deletes the allocation, but not its claims, because its volumes may still be on the node.
func TestClaim_OutlivesItsAllocation(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	j := w.job(volumeJob(single))
	w.place(j, "n1", nil, "a")
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(j.Key(), true)) })
	must.Eq(t, []string{"a: unpublishing"}, w.claimStates())
	must.Eq(t, "", w.change("a", "n1", cluster.CauseNode))
	must.SliceEmpty(t, w.claimStates())
}

// The claim of a writer on an unreachable node is freed when the node must have stopped the
// allocation, never before: the FSM checks the rule again.
func TestClaim_UnreachableNode(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	j := volumeJob(single)
	j.TaskGroups[0].Disconnect.StopOnClientAfter = 10 * time.Minute
	w.place(w.job(j), "n1", nil, "a")
	must.Eq(t, "its node may still use the volume", w.change("a", "n1", cluster.CauseUnreachable), must.Sprint("the node is reachable"))
	w.status("n1", cluster.NodeDown)
	w.now = w.now.Add(11*time.Minute + 3*time.Second) // plus the stop time of 5 s
	must.Eq(t, "its node may still use the volume", w.change("a", "n1", cluster.CauseUnreachable))
	w.now = w.now.Add(time.Second)
	must.Eq(t, "", w.change("a", "n1", cluster.CauseUnreachable))
	must.SliceEmpty(t, w.claimStates())
}

// Regression: an operator deletes the row of a healthy node. One allocation ended an hour ago and
// left a busy mount there. Its claim was freed immediately, because its wait was counted from its
// end. Now the wait begins with the deletion, and is not shorter than on a node that is down.
func TestClaim_NodeDeletedWithALeftMount(t *testing.T) {
	t.Parallel()
	const allowance = 20 * time.Minute
	w := volumeWorld(t, false, "n1")
	n := w.snap().Node("n1").Copy()
	n.VolumeAllowance = allowance
	w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(n, w.now)) })
	j := volumeJob(single)
	j.TaskGroups[0].Disconnect.StopOnClientAfter = 10 * time.Minute
	w.place(w.job(j), "n1", nil, "a")
	w.reports(busy(w, "a"))
	w.now = w.now.Add(time.Hour)
	must.Eq(t, "its node may still use the volume", w.change("a", "n1", cluster.CauseUnreachable))

	w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
	deleted := w.now
	must.True(t, deleted.Equal(w.claim("a").NodeGoneAt))
	must.EqOp(t, w.index, w.claim("a").ModifyIndex)
	must.Eq(t, "its node may still use the volume", w.change("a", "n1", cluster.CauseUnreachable))
	w.now = deleted.Add(10*time.Minute + 5*time.Second + allowance + cluster.StopMarginOfNode - 2*time.Second)
	must.Eq(t, "its node may still use the volume", w.change("a", "n1", cluster.CauseUnreachable))

	// Its client registers the node again. Then only the client frees the claim.
	w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(n, w.now)) })
	w.now = w.now.Add(time.Hour)
	must.Eq(t, "its node may still use the volume", w.change("a", "n1", cluster.CauseUnreachable))
	w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
	w.now = w.now.Add(10*time.Minute + 5*time.Second + allowance + cluster.StopMarginOfNode - time.Second)
	must.Eq(t, "", w.change("a", "n1", cluster.CauseUnreachable))
	must.SliceEmpty(t, w.claimStates())
}

func TestVolume_Register(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	upsert := func(edit func(*cluster.Volume)) (err error) {
		v := dataVolume()
		v.Context, v.Parameters = map[string]string{"share": "/data"}, map[string]string{"tier": "fast"}
		edit(v)
		w.write(func(x *statestore.Txn) { err = x.UpsertVolume(v, w.now) })
		return err
	}
	must.ErrorContains(t, upsert(func(v *cluster.Volume) { v.Capabilities = nil }), "Missing capabilities")
	must.NoError(t, upsert(func(v *cluster.Volume) { v.ExternalID = "vol-2" }))
	must.Eq(t, w.index, w.snap().Volume(dataKey).ModifyIndex)
	must.Less(t, w.index, w.snap().Volume(dataKey).CreateIndex)
	must.NoError(t, upsert(func(*cluster.Volume) {}))

	w.place(w.job(volumeJob(single)), "n1", nil, "a")
	must.ErrorIs(t, upsert(func(v *cluster.Volume) { v.ExternalID = "vol-2" }), statestore.ErrVolumeInUse)
	must.ErrorIs(t, upsert(func(v *cluster.Volume) { v.Plugin = "other" }), statestore.ErrVolumeInUse)
	must.ErrorIs(t, upsert(func(v *cluster.Volume) { v.Capabilities = v.Capabilities[1:] }), statestore.ErrVolumeInUse)
	// Regression: these two could change while the volume was mounted with the old ones.
	must.ErrorIs(t, upsert(func(v *cluster.Volume) { v.Context["share"] = "/other" }), statestore.ErrVolumeInUse)
	must.ErrorIs(t, upsert(func(v *cluster.Volume) { v.Parameters = nil }), statestore.ErrVolumeInUse)
	must.NoError(t, upsert(func(v *cluster.Volume) {
		v.Capabilities = v.Capabilities[:1]
		v.Secrets = map[string]string{"key": "new"}
	}))
	must.Eq(t, "new", w.snap().Volume(dataKey).Secrets["key"])
}

func TestVolume_Deregister(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	remove := func(force bool) (err error) {
		w.write(func(x *statestore.Txn) { err = x.DeleteVolume(dataKey, force) })
		return err
	}
	w.place(w.job(volumeJob(single)), "n1", nil, "a")
	must.ErrorIs(t, remove(false), statestore.ErrVolumeInUse)
	must.NoError(t, remove(true))
	must.SliceEmpty(t, w.claimStates())
	must.ErrorIs(t, remove(true), statestore.ErrVolumeNotFound)
}

// An operator detaches a volume: without force only from allocations that have ended. Each call
// with force does the next step.
func TestVolume_Detach(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, true, "n1")
	must.ErrorIs(t, w.detach("n1", false), statestore.ErrClaimNotFound)
	w.place(w.job(volumeJob(single)), "n1", nil, "a")
	must.ErrorIs(t, w.detach("n1", false), statestore.ErrVolumeInUse)
	must.ErrorContains(t, w.detach("n1", false), "allocation a has not ended: stop it first")
	w.stop("a")
	must.ErrorIs(t, w.detach("n1", false), statestore.ErrVolumeInUse)
	must.ErrorContains(t, w.detach("n1", false), "allocation a is stopping: its node unmounts the volume after the tasks")
	must.ErrorIs(t, w.detach("n2", true), statestore.ErrClaimNotFound)
	must.NoError(t, w.detach("n1", true))
	must.Eq(t, []string{"a: node detached"}, w.claimStates())
	must.NoError(t, w.detach("n1", false))
	must.Eq(t, []string{"a: node detached"}, w.claimStates())
	must.NoError(t, w.detach("n1", true))
	must.SliceEmpty(t, w.claimStates())
}

// A reader of one volume waits for its ClaimsIndex. The index moves with each change of the
// volume's claims, also when a claim is deleted, and not with claims of other volumes. A new
// registration keeps it.
func TestVolume_ClaimsIndex(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	other := w.snap().Volume(dataKey).Copy()
	other.ID = "other"
	w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertVolume(other, w.now)) })
	must.EqOp(t, 0, w.snap().Volume(dataKey).ClaimsIndex)
	changed := func() bool { return w.snap().Volume(dataKey).ClaimsIndex == w.index }
	w.place(w.job(volumeJob(shared)), "n1", nil, "a", "b")
	must.True(t, changed())
	w.report(cluster.ClientComplete, "a")
	must.True(t, changed())
	at := w.index
	w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertVolume(w.snap().Volume(dataKey), w.now)) })
	must.EqOp(t, at, w.snap().Volume(dataKey).ClaimsIndex)
	must.EqOp(t, 0, w.snap().Volume(other.Key()).ClaimsIndex)
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteVolume(dataKey, true)) })
	must.Nil(t, w.snap().Volume(dataKey))
}

// Force stops only the allocations that use the volume on the node, because another node may get
// the volume immediately. An allocation that is leaving or has ended gets no second mark.
func TestVolume_DetachStopsItsUsers(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1", "n2")
	j := w.job(volumeJob(shared))
	w.place(j, "n1", nil, "a", "b", "c")
	w.place(j, "n2", nil, "d")
	w.report(cluster.ClientComplete, "c")
	var stopped []cluster.AllocID
	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.MigrateAlloc("b", w.now))
		var err error
		stopped, err = x.DetachVolume(dataKey, "n1", true, w.now)
		must.NoError(t, err)
	})
	must.Eq(t, []cluster.AllocID{"a"}, stopped)
	for id, marked := range map[cluster.AllocID]bool{"a": true, "b": true, "c": false, "d": false} {
		must.EqOp(t, marked, w.snap().Alloc(id).DesiredTransition.Migrate, must.Sprint(id))
	}
	must.Eq(t, []string{"d: taken"}, w.claimStates())
}

// A plugin that becomes healthy may take work that waits.
func TestCapacityIndex_StoragePlugins(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false)
	plugin := &cluster.StoragePlugin{ID: "disks", Type: cluster.PluginNode}
	node := &cluster.Node{ID: "n1", Status: cluster.NodeReady, StoragePlugins: []*cluster.StoragePlugin{plugin}}
	counts := func() bool {
		w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(node, w.now)) })
		return w.snap().WorkView().CapacityIndex() == w.index
	}
	must.True(t, counts())
	must.False(t, counts())
	plugin.Healthy = true
	must.True(t, counts())
	plugin.HealthDescription, plugin.UpdateTime = "well", w.now
	must.False(t, counts())
	node.StoragePlugins = append(node.StoragePlugins, nil)
	w.write(func(x *statestore.Txn) {
		must.ErrorContains(t, x.UpsertNode(node, w.now), "storage plugin 1 is missing")
	})
}

// A state with volumes is restored without a change. A state without volumes is dumped and
// persisted as by builds without volumes, because states of servers of both builds are compared.
func TestVolumes_PersistAndDump(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, true, "n1", "n2")
	j := w.job(volumeJob(shared))
	w.place(j, "n1", nil, "a", "b")
	must.Eq(t, dump(t, w.snap()), dump(t, restored(t, w.snap()).Snapshot()))

	empty := newWorld(t)
	empty.nodes("n1")
	empty.store.Advance(9, cluster.VersionOfVolumes-1)
	must.StrNotContains(t, dump(t, empty.snap()), "laims")
	must.StrNotContains(t, dump(t, empty.snap()), "olumes")
	must.StrNotContains(t, string(persisted(t, empty.snap())), "claims")
}

// A volume has ten thousand claims. A write reads only its own claim.
func TestVolumes_ManyClaims(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	j := volumeJob(shared)
	j.TaskGroups[0].Count = 10_000
	j = w.job(j)
	for chunk := range slices.Chunk(slices.Collect(func(yield func(int) bool) {
		for i := 0; i < 10_000 && yield(i); i++ {
		}
	}), 500) {
		p := &cluster.Plan{}
		for _, i := range chunk {
			p.Places = append(p.Places, place(j, fmt.Sprintf("a%05d", i), cluster.NodeID(fmt.Sprintf("n%d", i%100))))
		}
		for i := range 100 {
			w.nodeOnce(cluster.NodeID(fmt.Sprintf("n%d", i)))
		}
		w.plan(p)
	}
	must.Len(t, 10_000, w.claimStates())
	w.report(cluster.ClientComplete, "a00000", "a09999")
	must.Len(t, 9_998, w.claimStates())
	must.Eq(t, 9_998, len(slices.Collect(restored(t, w.snap()).Snapshot().WorkView().Claims())))
}

func (w *world) nodeOnce(id cluster.NodeID) {
	if w.snap().Node(id) == nil {
		w.nodes(id)
	}
}

// A feed names the node of a changed claim of an allocation that the drain leaves, because the
// drain leaves the storage plugin while the claim exists. Other claims concern no drain.
func TestFeed_claims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   cluster.JobType
		spec   cluster.DrainSpec
		change func(w *world)
		feed   string
		left   int // plugins of volumes that may be on the node
	}{
		"detached by force": {
			cluster.JobSystem, cluster.DrainSpec{IgnoreSystemJobs: true},
			func(w *world) { must.NoError(t, w.detach("n1", true)) }, "[] [default/web.g] [] on [n1]", 0,
		},
		"the volume is deleted by force": {
			cluster.JobSystem, cluster.DrainSpec{IgnoreSystemJobs: true},
			func(w *world) {
				w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteVolume(dataKey, true)) })
			}, "[] [] [] on [n1]", 0,
		},
		"a drain of all jobs": {
			cluster.JobSystem, cluster.DrainSpec{}, func(w *world) {
				w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteVolume(dataKey, true)) })
			}, "[] [] []", 0,
		},
		"a consumer": {
			cluster.JobService, cluster.DrainSpec{IgnoreSystemJobs: true},
			func(w *world) {
				w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteVolume(dataKey, true)) })
			}, "[] [] []", 0,
		},
		"nothing changes": {
			cluster.JobSystem, cluster.DrainSpec{IgnoreSystemJobs: true},
			func(w *world) { w.change("a", "n1", cluster.CauseUnreachable) }, "[] [] []", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := volumeWorld(t, false, "n1")
			j := volumeJob(single)
			j.Type = c.kind
			w.place(w.job(j), "n1", nil, "a")
			w.drain("n1", "d1", c.spec)
			must.Eq(t, []cluster.PluginID{"disks"}, slices.Collect(w.snap().DrainView().VolumePlugins("a")))
			sub := subscribe(t, w.store)
			c.change(w)
			must.Eq(t, c.feed, sub.changes())
			must.Len(t, c.left, slices.Collect(w.snap().DrainView().VolumePlugins("a")))
		})
	}
}
