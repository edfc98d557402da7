package volumes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// When the claim of an allocation on an unreachable node is freed. The node is down since epoch,
// its client may take 7 s to unmount, and the task may take 5 s to stop.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	type world struct {
		claim *cluster.VolumeClaim
		alloc *cluster.Allocation
		node  *cluster.Node
	}
	const after = 10 * time.Minute
	waits := after + 12*time.Second + cluster.StopMarginOfNode
	for name, test := range map[string]struct {
		edit func(*world)
		// want is the time after epoch, or zero for never. why is a part of the reason.
		want time.Duration
		why  string
	}{
		"a writer that its node stops": {func(*world) {}, waits, "the leader frees the claim at 2026-01-02T03:15:17Z"},
		"the node is back":             {func(w *world) { w.node.Status = cluster.NodeReady }, 0, ""},
		"a disconnected node":          {func(w *world) { w.node.Status = cluster.NodeDisconnected }, waits, "cannot be reached"},
		"a client that never stops it": {func(w *world) { w.alloc.Job.TaskGroups[0].Disconnect.StopOnClientAfter = 0 }, 0, "no stop_on_client_after: only volume detach -force"},
		"a purged allocation":          {func(w *world) { w.alloc = nil }, 0, "its allocation is gone: only volume detach -force"},
		"a lost job":                   {func(w *world) { w.alloc.Job = nil }, 0, "only volume detach -force"},
		// The allocation ended long ago and left a mount. The node was deleted while its heartbeats
		// were answered.
		"a deleted node": {func(w *world) {
			w.node, w.alloc.ClientStatus, w.alloc.ModifyTime = nil, cluster.ClientComplete, epoch.Add(-time.Hour)
			w.claim.State, w.claim.NodeGoneAt, w.claim.NodeStopTime = cluster.ClaimUnpublishing, epoch, 12*time.Second
		}, waits, "the leader frees the claim at 2026-01-02T03:15:17Z"},
		"a deleted node, and the scheduler has not read it": {func(w *world) {
			w.node, w.claim.NodeGoneAt, w.claim.NodeStopTime = nil, epoch, 12*time.Second
		}, waits, "the leader frees the claim at"},
		"a node that was deleted at an unknown time": {func(w *world) {
			w.node, w.alloc.ClientStatus, w.alloc.ModifyTime = nil, cluster.ClientLost, epoch
		}, 0, "an unknown time"},
		"a deleted node that is back":               {func(w *world) { w.node.Status, w.claim.NodeGoneAt = cluster.NodeReady, epoch }, 0, ""},
		"a deleted node that came back and is down": {func(w *world) { w.claim.NodeGoneAt = epoch.Add(-time.Hour) }, waits, "the leader frees the claim at"},
		"a lost reader on a deleted node": {func(w *world) {
			w.claim.Mode, w.claim.Capability.Access, w.alloc.ClientStatus = cluster.ClaimRead, cluster.MultiNodeSingleWriter, cluster.ClientLost
			w.node, w.claim.NodeGoneAt = nil, epoch.Add(time.Nanosecond)
		}, time.Nanosecond, "cannot be reached"},
		"since an unknown time":            {func(w *world) { w.node.StatusChangedAt = time.Time{} }, 0, "an unknown time"},
		"a reader of a single-node volume": {func(w *world) { w.claim.Mode = cluster.ClaimRead }, waits, "the leader frees the claim at"},
		"a reader beside a writer": {func(w *world) {
			w.claim.Mode, w.claim.Capability.Access = cluster.ClaimRead, cluster.MultiNodeSingleWriter
		}, 0, "not lost yet"},
		"a lost reader beside a writer": {func(w *world) {
			w.claim.Mode, w.claim.Capability.Access, w.alloc.ClientStatus = cluster.ClaimRead, cluster.MultiNodeSingleWriter, cluster.ClientLost
			w.node.StatusChangedAt = epoch.Add(time.Nanosecond)
		}, time.Nanosecond, "cannot be reached"},
		"one of many writers": {func(w *world) {
			w.claim.Capability.Access, w.alloc.ClientStatus = cluster.MultiNodeMultiWriter, cluster.ClientLost
			w.node.StatusChangedAt = epoch.Add(time.Nanosecond)
		}, time.Nanosecond, "cannot be reached"},
	} {
		job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{
			Name: "g", Tasks: []*cluster.Task{{Name: "t"}}, Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: after},
			Volumes: []cluster.VolumeRequest{{Name: "d", Source: "data"}},
		}}}
		job.Canonicalize()
		w := &world{
			claim: &cluster.VolumeClaim{Node: "n1", Mode: cluster.ClaimWrite, Capability: cluster.VolumeCapability{Access: cluster.SingleNodeWriter}},
			alloc: &cluster.Allocation{ID: "a", Job: job, TaskGroup: "g", ClientStatus: cluster.ClientRunning},
			node:  &cluster.Node{ID: "n1", Status: cluster.NodeDown, StatusChangedAt: epoch, VolumeAllowance: 7 * time.Second},
		}
		test.edit(w)
		expiry := volumes.ExpiryOf(w.claim, w.alloc, w.node)
		must.StrContains(t, expiry.Why, test.why, must.Sprint(name))
		must.Eq(t, test.why == "", expiry.Why == "", must.Sprint(name))
		if test.want == 0 {
			must.True(t, expiry.At.IsZero(), must.Sprint(name))
			must.False(t, expiry.Passed(epoch.Add(1000*time.Hour)), must.Sprint(name))
			continue
		}
		must.Eq(t, test.want, expiry.At.Sub(epoch), must.Sprint(name))
		must.True(t, expiry.Passed(expiry.At) && !expiry.Passed(expiry.At.Add(-1)), must.Sprint(name))
		must.False(t, strings.Contains(expiry.Why, "\n"))
	}
}

// The time at which a claim is freed stays while the node is away, although the status of the node changes. Bug: no
// test had a disconnected node that becomes down.
func TestUnreachable_theTimeStays(t *testing.T) {
	t.Parallel()
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Tasks: []*cluster.Task{{Name: "t"}}, Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: 10 * time.Minute},
		Volumes: []cluster.VolumeRequest{{Name: "d", Source: "data"}},
	}}}
	job.Canonicalize()
	claim := &cluster.VolumeClaim{Node: "n1", Mode: cluster.ClaimWrite, Capability: cluster.VolumeCapability{Access: cluster.SingleNodeWriter}}
	for name, steps := range map[string][]cluster.NodeStatus{
		"down":                           {cluster.NodeDown},
		"disconnected":                   {cluster.NodeDisconnected},
		"disconnected, then down":        {cluster.NodeDisconnected, cluster.NodeDown},
		"down, disconnected, down again": {cluster.NodeDown, cluster.NodeDisconnected, cluster.NodeDown},
	} {
		alloc := &cluster.Allocation{ID: "a", Job: job, TaskGroup: "g", ClientStatus: cluster.ClientRunning}
		node := &cluster.Node{ID: "n1", AwaySince: epoch, VolumeAllowance: 7 * time.Second}
		var first time.Time
		for i, step := range steps {
			node.Status, node.StatusChangedAt = step, epoch.Add(time.Duration(i)*time.Hour)
			if step == cluster.NodeDown {
				alloc.ClientStatus = cluster.ClientLost
			}
			at := volumes.ExpiryOf(claim, alloc, node).At
			must.False(t, at.IsZero(), must.Sprint(name))
			if i == 0 {
				first = at
			}
			must.Eq(t, first, at, must.Sprint(name, " ", i))
		}
	}
}
