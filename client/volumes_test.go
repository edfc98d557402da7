package client_test

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// placePlugin places the allocation of a storage plugin, which is a system job.
func (n *node) placePlugin(id cluster.AllocID) {
	a := allocation(id, pluginTask("plugin"))
	a.Job.TaskGroups[0].Tasks[0].CSIPlugin.Type = cmp.Or(n.kind, cluster.PluginMonolith)
	a.Job.Type = cluster.JobSystem
	n.place(a)
	n.run(time.Second)
}

// newMounted returns a node with a storage plugin p and an allocation a, whose task web has the
// volume "data".
func newMounted(t *testing.T) *node {
	n := newNode(t)
	n.placePlugin("p")
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(time.Minute)
	return n
}

// completed checks that the servers have the end of allocations.
func completed(n *node, ids ...cluster.AllocID) {
	n.t.Helper()
	for _, id := range ids {
		must.Eq(n.t, cluster.ClientComplete, n.status(id))
	}
}

// end ends the last allocation that has a volume.
func end(n *node, id cluster.AllocID) {
	n.t.Helper()
	leaves(n, id, time.Minute)
	completed(n, id)
	n.storage.empty()
}

// A task starts when its volume is published, and its allocation ends when the volume is unmounted.
func TestVolumes_aroundTheTasks(t *testing.T) {
	n := newMounted(t)
	must.Eq(t, cluster.ClientRunning, n.status("a"))
	must.SliceLen(t, 1, n.storage.published())
	n.storage.unpublishTakes = 5 * time.Second
	leaves(n, "a", 4*time.Second)
	must.SliceEmpty(t, n.live("web"))
	must.Eq(t, cluster.ClientRunning, n.status("a"), must.Sprint("C3: it is reported after its volume is off"))
	must.Eq(t, "all tasks have ended, and volumes must be unmounted", n.servers["a"].ClientDescription)
	must.SliceLen(t, 1, n.servers["a"].VolumeHolds.Volumes)
	reaches(n, "a", cluster.ClientComplete, 4*time.Second)
	must.Eq(t, &cluster.VolumeHolds{}, n.servers["a"].VolumeHolds)
	must.Eq(t, []string{"claim", "stage", "publish", "unpublish", "unstage", "release"}, n.storage.calls)
	n.storage.empty()
}

// An allocation reports what its volume waits for.
func TestVolumes_waitsAreShown(t *testing.T) {
	n := newNode(t)
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(time.Minute)
	must.SliceEmpty(t, n.live("web"))
	wait := n.taskState("a", "web").Waiting
	must.NotNil(t, wait)
	must.EqOp(t, cluster.WaitVolume, wait.For)
	must.StrContains(t, wait.Detail, `volume default/data must be staged: the storage plugin "disks" does not answer; at /volumes/staging/default/data/`)
	n.placePlugin("p")
	n.run(time.Minute)
	must.SliceLen(t, 1, n.live("web"))
	must.Nil(t, n.taskState("a", "web").Waiting)
}

// If a mount is refused with a final error, the start fails, and the restart policy applies. C10:
// the claim is released once.
func TestVolumes_refused(t *testing.T) {
	n := newNode(t)
	n.placePlugin("p")
	n.storage.failing["stage"] = storage.Errorf(storage.Refused, "unknown file system")
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(20 * time.Second)
	must.EqOp(t, uint64(2), n.taskState("a", "web").Restarts)
	reaches(n, "a", cluster.ClientFailed, time.Hour)
	must.StrContains(t, n.eventsOf("a", "web"), "Setup Failure, Not Restarting")
	delete(n.storage.failing, "stage")
	n.run(time.Minute)
	must.Eq(t, map[cluster.ClaimKey]int{{Volume: dataKey, Alloc: "a"}: 1}, n.storage.released)
}

// The next start, after the delay of the policy, calls a plugin again that has refused a mount. Bug: the client called it
// again at once, and the second refusal ended the next start.
func TestVolumes_refusedOnce(t *testing.T) {
	for _, call := range []string{"stage", "publish"} {
		n := newNode(t)
		n.placePlugin("p")
		n.storage.failing[call] = storage.Errorf(storage.Refused, "unknown file system")
		a := withVolumes(allocation("a", mainTask("one"), mainTask("two")), "data")
		a.Job.TaskGroups[0].RestartPolicy.Attempts = 1
		n.place(a)
		n.run(10 * time.Second)
		delete(n.storage.failing, call)
		n.run(4 * time.Second)
		must.SliceEmpty(t, n.storage.published())
		n.run(6 * time.Second)
		for _, name := range []string{"one", "two"} {
			must.SliceLen(t, 1, n.live(name), must.Sprint(call, ": ", n.eventsOf("a", name)))
			must.EqOp(t, 1, n.taskState("a", name).Restarts)
		}
		end(n, "a")
	}
}

var dataKey = cluster.VolumeKey{Namespace: "default", ID: "data"}

func TestVolumes_nodeWithoutVolumes(t *testing.T) {
	n := newNode(t)
	n.noVolumes = true
	n.startCore()
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	reaches(n, "a", cluster.ClientFailed, time.Minute)
	must.StrContains(t, n.eventsOf("a", "web"), "Setup Failure")
}

// C1: the plugin must stop at the same moment as the allocation that uses its volume, as in a
// forced drain. The plugin gets its signal after the last volume is unmounted and its claim is
// released.
func TestVolumes_pluginsLast(t *testing.T) {
	n := newMounted(t)
	n.scripts["web"] = script{stopTakes: 2 * time.Second}
	n.storage.unpublishTakes = 5 * time.Second
	n.stop("p")
	leaves(n, "a", 4*time.Second)
	must.SliceLen(t, 1, n.live("plugin"))
	must.StrHasPrefix(t, "stopping (waiting for 1 volume)", n.servers["p"].ClientDescription)
	must.Eq(t, dataKey, n.servers["p"].VolumeHolds.Volumes[0].Key().Volume)
	must.EqOp(t, cluster.WaitVolume, n.taskState("p", "plugin").Waiting.For)
	n.run(time.Minute)
	completed(n, "a", "p")
	must.Eq(t, &cluster.VolumeHolds{}, n.servers["p"].VolumeHolds)
	n.storage.empty()
}

// An operator detaches a volume by force: the claim is freed, and the servers stop the allocation.
// The client unmounts the volume after the tasks have ended, and does not publish it again, also if
// it restarts meanwhile and the mount is lost, or the record of the volume. Bug: without that
// record the client requested the servers for the plugin for ever, because they had no claim.
func TestVolumes_detachedByForce(t *testing.T) {
	for name, meanwhile := range map[string]func(*node){
		"nothing":                          func(*node) {},
		"the client dies":                  func(n *node) { n.crash() },
		"the record of the volume is lost": func(n *node) { clear(n.storage.disk); n.crash() },
		"the mount is lost":                func(n *node) { n.storage.Lose(busyTarget("a", "data")); n.crash() },
	} {
		t.Run(name, func(t *testing.T) {
			n := newMounted(t)
			n.scripts["web"] = script{stopTakes: 2 * time.Second}
			n.storage.revoke(cluster.ClaimKey{Volume: dataKey, Alloc: "a"})
			meanwhile(n)
			n.run(10 * time.Second) // the node is away
			must.SliceLen(t, 1, n.live("web"))
			leaves(n, "a", time.Second)
			must.SliceLen(t, 1, n.live("web"), must.Sprint("it has its grace"))
			reaches(n, "a", cluster.ClientComplete, time.Minute)
			must.Eq(t, []string{"claim", "stage", "publish", "unpublish", "unstage", "release"}, n.storage.calls)
			n.storage.empty()
		})
	}
}

// C2: a busy mount holds the plugin, and the reports name the volume and the process. When the
// mount is free, all allocations end.
func TestVolumes_busyMountHoldsThePlugin(t *testing.T) {
	n := newMounted(t)
	n.storage.MakeBusy(busyTarget("a", "data"), storage.Holder{PID: 99, Command: "tail -f x"})
	n.stop("p")
	leaves(n, "a", 5*time.Minute)
	for _, id := range []cluster.AllocID{"a", "p"} {
		must.Eq(t, cluster.ClientRunning, n.status(id))
		hold := n.servers[id].VolumeHolds.Volumes[0]
		must.EqOp(t, "a", hold.Alloc)
		must.EqOp(t, busyTarget("a", "data"), hold.Path)
		must.StrContains(t, hold.Reason, "kept busy by process 99 (tail -f x)")
	}
	n.crash() // C8
	n.answer()
	n.run(time.Minute)
	must.SliceLen(t, 1, n.live("plugin"))
	n.storage.freeAll()
	n.run(time.Minute)
	completed(n, "a", "p")
	must.Zero(t, n.storage.holdLimits)
	n.storage.empty()
}

// The hold has a limit. After it the allocations are reported as ended with the volumes, and the
// client unmounts the volumes with the next plugin.
func TestVolumes_holdLimit(t *testing.T) {
	n := newMounted(t)
	n.storage.MakeBusy(busyTarget("a", "data"), storage.Holder{PID: 99, Command: "tail"})
	n.stop("p")
	n.stop("a")
	reaches(n, "a", cluster.ClientRunning, client.DefaultHoldLimit-time.Second)
	must.SliceLen(t, 1, n.live("plugin"))
	n.run(time.Minute)
	completed(n, "a", "p")
	must.EqOp(t, 1, n.storage.holdLimits)
	must.StrContains(t, n.eventsOf("p", "plugin"), "Hold Over")
	must.Eq(t, "all tasks have ended; volumes are left on the node, and the client retries to unmount them", n.servers["a"].ClientDescription)
	must.SliceLen(t, 1, n.servers["a"].VolumeHolds.Volumes)
	n.crash()
	n.answer()
	n.storage.freeAll()
	n.placePlugin("q")
	n.run(time.Minute)
	n.storage.empty()
	must.Eq(t, &cluster.VolumeHolds{}, n.servers["a"].VolumeHolds)
}

// C13: a plugin that dies during its hold is restarted, and the volume is unpublished.
func TestVolumes_pluginDiesWhileItIsHeld(t *testing.T) {
	n := newMounted(t)
	n.storage.unpublishTakes = 10 * time.Second
	n.stop("p")
	leaves(n, "a", 3*time.Second)
	n.exit(n.live("plugin")[0], 1, 0)
	n.run(2 * time.Minute)
	completed(n, "a", "p")
	must.Zero(t, n.storage.holdLimits)
	n.storage.empty()
}

// A newer version of the plugin replaces the older one while a volume is published, and unpublishes
// it.
func TestVolumes_newVersionOfThePlugin(t *testing.T) {
	n := newMounted(t)
	q := allocation("q", pluginTask("plugin"))
	q.Job.Type, q.PreviousAllocation = cluster.JobSystem, "p"
	n.place(q)
	ends(n, "p", 10*time.Second)
	must.Eq(t, cluster.ClientRunning, n.status("q"))
	must.SliceLen(t, 1, n.live("web"))
	end(n, "a")
}

// A newer version of the plugin that arrives during the hold of the older one ends the hold.
func TestVolumes_newVersionEndsTheHold(t *testing.T) {
	n := newMounted(t)
	n.stop("p")
	reaches(n, "p", cluster.ClientRunning, 10*time.Second)
	q := allocation("q", pluginTask("plugin"))
	q.Job.Type = cluster.JobSystem
	n.place(q)
	reaches(n, "p", cluster.ClientComplete, 2*time.Second)
	end(n, "a")
}

// C14: a plugin that serves nothing stops at once.
func TestVolumes_onlyPluginsLeft(t *testing.T) {
	n := newNode(t)
	n.placePlugin("p")
	ends(n, "p", time.Second)
}

// C9: the volume of the replacement on the same node is mounted after the volume of the old
// allocation is unmounted.
func TestVolumes_replacementWaits(t *testing.T) {
	n := newMounted(t)
	n.storage.unpublishTakes = 5 * time.Second
	b := withVolumes(allocation("b", mainTask("web")), "data")
	b.PreviousAllocation = "a"
	n.place(b)
	n.stop("a")
	reaches(n, "b", cluster.ClientRunning, time.Minute)
	must.Eq(t, []string{"claim", "stage", "publish", "unpublish", "unstage", "release", "claim", "stage", "publish"}, n.storage.calls)
}

// C12: the servers no longer have an allocation that the client still has. The client unmounts its
// volume.
func TestVolumes_forgottenAllocation(t *testing.T) {
	n := newMounted(t)
	n.allocs = n.allocs[:1]
	n.index++
	n.answer()
	n.run(time.Minute)
	n.storage.empty()
}

// After a boot of the machine nothing is mounted, and the plugin starts first.
func TestVolumes_reboot(t *testing.T) {
	n := newMounted(t)
	n.reboot()
	n.answer()
	n.run(time.Minute)
	must.SliceLen(t, 1, n.live("web"))
	must.SliceLen(t, 1, n.storage.published())
	end(n, "a")
}

// While a call fails repeatedly, the wait shows the error.
func TestVolumes_failingCall(t *testing.T) {
	n := newNode(t)
	n.placePlugin("p")
	n.storage.failing["publish"] = errors.New("the pool is full")
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(time.Minute)
	must.StrContains(t, n.taskState("a", "web").Waiting.Detail, "must be published: the pool is full; at "+busyTarget("a", "data"))
	delete(n.storage.failing, "publish")
	n.run(time.Minute)
	must.SliceLen(t, 1, n.live("web"))
}

// The record of a volume is lost. The record of the allocation still states that the volume is
// mounted.
func TestVolumes_lostRecord(t *testing.T) {
	n := newMounted(t)
	clear(n.storage.disk)
	restarts(n, time.Minute)
	must.SliceLen(t, 1, n.live("web"))
	end(n, "a")
}

// C15: the volume is unmounted, and its claim is not released yet. The allocation has ended. A
// plugin with a controller stays until the release, because the servers may need it.
func TestVolumes_controllerUntilTheRelease(t *testing.T) {
	n := newMounted(t)
	n.storage.failing["release"] = errors.New("the controller is busy")
	n.stop("p")
	ends(n, "a", time.Minute)
	must.Eq(t, &cluster.VolumeHolds{}, n.servers["a"].VolumeHolds)
	must.SliceLen(t, 1, n.live("plugin"))
	must.StrContains(t, n.servers["p"].VolumeHolds.Volumes[0].Reason, "must be released by the servers: the controller is busy")
	delete(n.storage.failing, "release")
	reaches(n, "p", cluster.ClientComplete, time.Minute)
	n.storage.empty()
}

// A controller must stop while a volume is being unmounted. It stays, because it is needed
// afterwards to detach the volume. Bug: it was requested to stop, its driver was slow, and it stopped
// during the release.
func TestVolumes_controllerUntilAVolumeHasLeft(t *testing.T) {
	n := newNode(t)
	n.kind = cluster.PluginNode
	n.placePlugin("p")
	n.kind = cluster.PluginController
	n.placePlugin("c")
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(time.Minute)
	must.SliceLen(t, 2, n.live("plugin"))
	n.storage.unpublishTakes = 30 * time.Second
	leaves(n, "a", 10*time.Second)
	must.SliceEmpty(t, n.live("web"))
	leaves(n, "c", 10*time.Second)
	must.SliceNotEmpty(t, n.storage.published())
	must.SliceLen(t, 2, n.live("plugin"))
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.Eq(t, cluster.ClientComplete, n.status("c"))
	must.MapEmpty(t, n.storage.claims)
}

// A plugin that only mounts is not held for a release.
func TestVolumes_nodePluginAndARelease(t *testing.T) {
	n := newNode(t)
	n.kind = cluster.PluginNode
	n.placePlugin("p")
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(time.Minute)
	n.storage.failing["release"] = errors.New("the controller is busy")
	n.stop("p")
	n.stop("a")
	reaches(n, "p", cluster.ClientComplete, time.Minute)
}

// planned adds a claim that a plan has created.
func (st *fakeStorage) planned(alloc cluster.AllocID) {
	k := cluster.ClaimKey{Volume: dataKey, Alloc: alloc}
	st.claims[k] = st.node.index
}

// C12. The servers free no claim on a node that they reach. Bug: a claim stayed for ever if the
// client had never received its allocation, or had not requested the claim.
func TestVolumes_releasesClaimsOfUnknownAllocations(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(*node){
		"lost before the client received it": func(n *node) {
			n.index++
			n.storage.planned("a")
			a := withVolumes(allocation("a", mainTask("web")), "data")
			a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientLost
			n.place(a)
		},
		"purged before the client received it": func(n *node) {
			n.index++
			n.storage.planned("a")
			n.index++
			n.answer()
		},
		"purged before the client requested the claim": func(n *node) {
			n.index++
			n.storage.planned("a")
			init := mainTask("init")
			init.Lifecycle = &cluster.Lifecycle{Hook: cluster.HookPrestart}
			n.place(withVolumes(allocation("a", init, mainTask("web")), "data"))
			n.allocs = n.allocs[:1]
			n.index++
			n.answer()
		},
		"purged while it is mounted": func(n *node) {
			n.place(withVolumes(allocation("a", mainTask("web")), "data"))
			n.run(time.Minute)
			must.SliceLen(n.t, 1, n.storage.published())
			n.allocs = n.allocs[:1]
			n.index++
			n.answer()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.placePlugin("p")
			story(n)
			n.run(time.Minute)
			n.storage.empty()
		})
	}
}

// The disk is full when an allocation ends, and the client dies while it unpublishes the volume.
// The record on the disk states that the allocation runs and has its volume, and the mount table
// agrees. Bug: the next client started the task, and then the call of the dead client unpublished
// the volume.
func TestVolumes_unpublishOfADeadClient(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.placePlugin("p")
	a := withVolumes(allocation("a", mainTask("web")), "data")
	a.Job.Type = cluster.JobBatch
	n.scripts["web"] = script{recoverErr: errors.New("it is destroyed")}
	n.place(a)
	n.run(time.Minute)
	n.storage.unpublishTakes, n.fullDisk = 20*time.Second, true
	n.exit(n.live("web")[0], 0, 0)
	n.run(time.Second)
	must.SliceEmpty(t, n.live("web"))
	n.storage.unpublishTakes, n.fullDisk = 0, false
	restarts(n, time.Minute)
	must.SliceLen(t, 1, n.live("web"))
	must.SliceLen(t, 1, n.storage.published())
	end(n, "a")
}

// The servers are out of reach, and two allocations of a controller must stop at the same moment.
// Bug: one of them stopped during the release of a volume, because the other one would serve it,
// and then the other one had to stop too.
func TestVolumes_twoControllersThatAreCutOff(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.kind = cluster.PluginNode
	n.placePlugin("p")
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	for _, id := range []cluster.AllocID{"c1", "c2"} {
		a := allocation(id, pluginTask("plugin"))
		a.Job.TaskGroups[0].Tasks[0].CSIPlugin.Type = cluster.PluginController
		a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Hour
		n.place(a)
	}
	n.run(time.Minute)
	n.storage.failing["release"] = errors.New("the servers do not answer")
	leaves(n, "a", time.Hour)
	must.SliceLen(t, 3, n.live("plugin"), must.Sprint("both controllers are held"))
	n.run(client.DefaultHoldLimit)
	must.SliceLen(t, 1, n.live("plugin"))
}

// The records of a volume and of its allocation are lost, and the volume is still mounted. The
// claim at the servers states what the client must undo.
func TestVolumes_bothRecordsLost(t *testing.T) {
	t.Parallel()
	n := newMounted(t)
	n.storage.MakeBusy(busyTarget("a", "data"), storage.Holder{PID: 99, Command: "tail"})
	leaves(n, "a", client.DefaultHoldLimit+time.Minute)
	completed(n, "a")
	clear(n.storage.disk)
	delete(n.disk, "a")
	n.allocs = n.allocs[:1] // the servers list no allocation whose end they have
	n.storage.freeAll()
	n.crash()
	n.run(time.Minute)
	must.SliceLen(t, 1, n.storage.published())
	n.index++
	n.answer()
	n.run(time.Minute)
	n.storage.empty()
}

// A plugin must stop, serves nothing, and takes long to stop. Bug: an allocation that got its claim
// meanwhile had its volume mounted by this plugin, which then ended.
func TestVolumes_noMountsByAPluginThatStops(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	p := allocation("p", pluginTask("plugin"))
	p.Job.Type, p.Job.TaskGroups[0].Tasks[0].KillTimeout = cluster.JobSystem, time.Minute
	n.place(p)
	n.scripts["plugin"] = script{ignores: true}
	n.storage.failing["claim"] = errors.New("the volume is another allocation's")
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(time.Minute)
	leaves(n, "p", time.Second)
	must.SliceLen(t, 1, n.live("plugin"))
	delete(n.storage.failing, "claim")
	n.crash() // the next client finds a plugin that answers
	n.answer()
	n.run(30 * time.Second)
	must.SliceLen(t, 1, n.live("plugin"))
	must.SliceEmpty(t, n.storage.Mounts())
	n.run(time.Hour)
	must.SliceEmpty(t, n.live("plugin"))
	must.SliceEmpty(t, n.storage.Mounts())
	n.placePlugin("q")
	n.run(time.Minute)
	must.SliceLen(t, 1, n.live("web"))
	end(n, "a")
}

// A claim that is newer than the answer belongs to an allocation in the next answer.
func TestVolumes_keepsClaimsOfLaterPlans(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.placePlugin("p")
	n.index++
	n.storage.planned("a")
	n.index-- // the list of allocations is older than the claims
	n.answer()
	n.run(time.Minute)
	must.MapLen(t, 1, n.storage.claims)
	n.place(withVolumes(allocation("a", mainTask("web")), "data"))
	n.run(time.Minute)
	must.SliceLen(t, 1, n.storage.published())
	must.MapEmpty(t, n.storage.released)
}

// The client has the list of the mounts that an earlier client has left. Bug: a client that had unmounted a
// volume since then unmounted it again for a claim of an allocation that it had never received, and
// requested the claim again without a record of it.
func TestVolumes_claimOfAnUnknownAllocationAfterTheUnmount(t *testing.T) {
	t.Parallel()
	n := newMounted(t)
	restarts(n, time.Minute)
	leaves(n, "a", time.Minute)
	before := len(n.storage.calls)
	n.index++
	n.storage.planned("b")
	n.index++
	n.answer() // b is purged
	n.run(time.Minute)
	must.Eq(t, []string{"release"}, n.storage.calls[before:])
	n.storage.empty()
}
