package statestore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// leftOn are the volumes of the record as "allocation: reason at path".
func leftOn(d *cluster.Drain) (left []string) {
	if d.VolumesLeft == nil {
		return nil
	}
	for _, v := range d.VolumesLeft.Volumes {
		left = append(left, strings.TrimSuffix(fmt.Sprintf("%s: %s at %s", v.Alloc, v.Reason, v.Path), " at "))
	}
	if d.VolumesLeft.More > 0 {
		left = append(left, fmt.Sprintf("%d more", d.VolumesLeft.More))
	}
	return left
}

// busy is a report of an allocation that ended although its volume is busy.
func busy(w *world, id string) cluster.AllocReport {
	return cluster.AllocReport{
		Alloc: cluster.AllocID(id), Node: "n1", ClientStatus: cluster.ClientFailed, At: w.now,
		VolumeHolds: &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{
			Namespace: dataKey.Namespace, Volume: dataKey.ID, Alloc: cluster.AllocID(id), Path: "/mnt/data", Reason: "busy: process 7 (tail)", Since: w.now,
		}}},
	}
}

// The record of a drain names the volumes that allocations that had to leave still have on the
// node, and why. The drain may be complete anyway, if the client gave up after its hold limit.
func TestDrain_volumesLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(w *world) // after the allocations were placed
		want   []string
	}{
		"nothing is left":       {func(w *world) { w.report(cluster.ClientComplete, "a", "b") }, nil},
		"a busy mount":          {func(w *world) { w.reports(busy(w, "a")); w.report(cluster.ClientComplete, "b") }, []string{"a: busy: process 7 (tail) at /mnt/data"}},
		"an allocation runs":    {func(w *world) { w.report(cluster.ClientComplete, "b") }, []string{"a: its allocation has not ended"}},
		"a node that is silent": {func(w *world) { w.lost("a"); w.report(cluster.ClientComplete, "b") }, []string{"a: its client has not reported that it is off the node"}},
		"a purged job": {func(w *world) {
			w.write(func(x *statestore.Txn) {
				must.NoError(w.t, x.DeleteJob(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}, true))
			})
		}, []string{"a: its allocation was purged, and its client has not reported that it is off the node", "b: its allocation was purged, and its client has not reported that it is off the node"}},
		"an operator freed them": {func(w *world) { must.NoError(w.t, w.detach("n1", true)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := volumeWorld(t, false, "n1")
			w.place(w.job(volumeJob(shared)), "n1", nil, "a", "b")
			w.drain("n1", "d1", cluster.DrainSpec{})
			c.before(w)
			w.complete("n1", cluster.OutcomeComplete, 0)
			must.Eq(t, c.want, leftOn(w.snap().DrainRecord("d1")))
			events := w.snap().Node("n1").Events
			must.Eq(t, c.want != nil, events[len(events)-1].Details[cluster.EventDetailVolumesLeft] != "")
		})
	}
}

// lost sets the client status of the allocation to lost.
func (w *world) lost(id cluster.AllocID) {
	a := w.snap().Alloc(id).Copy()
	a.ClientStatus = cluster.ClientLost
	w.write(func(x *statestore.Txn) { x.PutAlloc(id, a) })
}

// The record does not name volumes of allocations that the drain leaves, or volumes that only wait
// for a controller, because those are not on the node.
func TestDrain_volumesNotLeft(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, true, "n1")
	system := volumeJob(shared)
	system.ID, system.Type = "backup", cluster.JobSystem
	w.place(w.job(system), "n1", nil, "s")
	w.drain("n1", "d1", cluster.DrainSpec{IgnoreSystemJobs: true})
	w.complete("n1", cluster.OutcomeComplete, 0)
	must.Nil(t, w.snap().DrainRecord("d1").VolumesLeft)

	w.report(cluster.ClientComplete, "s")
	must.Eq(t, []string{"s: node detached"}, w.claimStates())
	w.drain("n1", "d2", cluster.DrainSpec{})
	w.complete("n1", cluster.OutcomeComplete, 0)
	must.Nil(t, w.snap().DrainRecord("d2").VolumesLeft)
}

// A record names a bounded number of volumes, and outlives the allocations and the node. It is the
// same after a snapshot.
func TestDrain_volumesLeftAreBounded(t *testing.T) {
	t.Parallel()
	w := volumeWorld(t, false, "n1")
	j := volumeJob(shared)
	var ids []string
	for i := range cluster.MaxVolumeHolds + 3 {
		ids = append(ids, fmt.Sprintf("a%02d", i))
	}
	w.place(w.job(j), "n1", nil, ids...)
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
	left := leftOn(w.snap().DrainRecord("d1"))
	must.Len(t, cluster.MaxVolumeHolds+1, left)
	must.Eq(t, "3 more", left[cluster.MaxVolumeHolds])
	must.Eq(t, "a00: its allocation has not ended", left[0])

	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.DeleteJob(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}, true))
	})
	again := restored(t, w.snap()).Snapshot()
	must.Eq(t, left, leftOn(again.DrainRecord("d1")))
	must.Nil(t, again.Alloc("a00"))
}
