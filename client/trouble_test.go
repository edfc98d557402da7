package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// A task that died while the client was down must not get a healthy verdict.
func TestCore_healthOfADeadTask(t *testing.T) {
	n := newRunning(t, script{}, 2*time.Second)
	web := n.live("web")[0]
	n.crash()
	n.exit(web, 1, 0)
	n.boot += time.Minute
	n.answer()
	n.run(5 * time.Second)
	must.Nil(t, n.servers["a"].Healthy, must.Sprint("the verdict on a task that is dead"))
}

// An operator restores an older state of the servers: the end of the allocation is reported again.
func TestCore_restoredServersLearnTheEnd(t *testing.T) {
	n := newNode(t)
	n.place(allocation("a", mainTask("web")))
	old := n.allocs[0].Copy()
	n.run(20 * time.Second)
	ends(n, "a", 20*time.Second)
	// The snapshot is from before the stop. Its index is above all indexes that were used.
	n.allocs[0] = old
	clear(n.servers)
	n.index = 1000
	n.answer()
	reaches(n, "a", cluster.ClientComplete, time.Minute)
}

// The same for a running allocation, with a mark that the snapshot does not contain. The following
// stop has a greater index.
func TestCore_restoredServersLearnThatItRuns(t *testing.T) {
	n := newNode(t)
	n.place(allocation("a", mainTask("web")))
	old := n.allocs[0].Copy()
	n.run(20 * time.Second)
	n.index++
	marked := n.allocs[0].Copy()
	marked.DesiredTransition.Migrate = true
	marked.AllocModifyIndex = n.index
	n.allocs[0] = marked
	n.answer()
	n.run(time.Second)
	n.allocs[0] = old
	clear(n.servers)
	n.index = 1000
	n.answer()
	reaches(n, "a", cluster.ClientRunning, time.Minute)
	must.NotNil(t, n.servers["a"].Healthy)
}

// The first allocation stops for a long time. Each of the next ones replaces the one before, waits for the
// first and is stopped. The last one starts when the first has ended, also if the client keeps no ended
// allocation, and if it restarts. Bug: it removed an ended allocation of the chain too early, so the last one
// no longer waited.
func TestCore_chainOfReplacements(t *testing.T) {
	for length := 2; length <= 4; length++ {
		for _, keep := range []int{0, 1, -1} {
			for _, crash := range []bool{false, true} {
				t.Run(fmt.Sprint(length, " keep ", keep, " crash ", crash), func(t *testing.T) {
					n := newNode(t)
					n.keepEnded = keep
					n.startCore()
					n.scripts["web"] = script{stopTakes: time.Minute}
					for i := range length {
						a := allocation(cluster.AllocID('a'+rune(i)), &cluster.Task{Name: "web", KillTimeout: 5 * time.Minute})
						if i > 0 {
							a.PreviousAllocation = n.allocs[i-1].ID
						}
						n.place(a)
						n.run(5 * time.Second)
						if i < length-1 {
							n.stop(a.ID)
							n.run(2 * time.Second)
						}
					}
					if crash {
						restarts(n, time.Second)
					}
					must.Len(t, 1, n.live("web"), must.Sprint(n.storyOf()))
					must.EqOp(t, "a", n.live("web")[0].alloc)
					n.run(2 * time.Minute)
					must.Len(t, 1, n.live("web"), must.Sprint(n.storyOf()))
					must.EqOp(t, n.allocs[length-1].ID, n.live("web")[0].alloc)
					if keep < 0 && !crash {
						must.MapLen(t, 1, n.disk)
					}
				})
			}
		}
	}
}

// A full disk must not prevent the end of an allocation with a poststop task.
func TestCore_poststopOnAFullDisk(t *testing.T) {
	n := newNode(t)
	n.scripts["cleanup"] = script{runs: []ending{{after: time.Second}}}
	n.place(allocation("a", mainTask("web"), hooked("cleanup", cluster.HookPoststop, false)))
	n.run(20 * time.Second)
	n.fullDisk = true
	ends(n, "a", time.Hour)
}

// A failed poststop task does not change the status of its allocation: the work was done before. The
// task and the description of the allocation show the failure. Once both were as after a success.
func TestCore_poststopFails(t *testing.T) {
	for name, c := range map[string]struct {
		web, cleanup ending
		status       cluster.ClientStatus
		description  string
		failed       bool
	}{
		"it succeeds":         {ending{after: time.Second}, ending{after: time.Second}, cluster.ClientComplete, "all tasks have ended", false},
		"it fails":            {ending{after: time.Second}, ending{after: time.Second, code: 3}, cluster.ClientComplete, "all tasks have ended; poststop failed: cleanup", true},
		"it does not end":     {ending{after: time.Second}, ending{after: time.Hour}, cluster.ClientComplete, "all tasks have ended; poststop failed: cleanup", true},
		"after a failed task": {ending{after: time.Second, code: 1}, ending{after: time.Second, code: 3}, cluster.ClientFailed, "failed tasks; poststop failed: cleanup", true},
	} {
		n := newNode(t)
		n.scripts["web"] = script{runs: []ending{c.web}}
		n.scripts["cleanup"] = script{runs: []ending{c.cleanup}}
		a := allocation("a", mainTask("web"), hooked("cleanup", cluster.HookPoststop, false))
		a.Job.Type = cluster.JobBatch
		a.Job.TaskGroups[0].RestartPolicy = &cluster.RestartPolicy{Mode: cluster.RestartFail}
		n.place(a)
		reaches(n, "a", c.status, time.Hour)
		row := n.servers["a"]
		must.Eq(t, c.status, row.ClientStatus, must.Sprint(name))
		must.Eq(t, c.description, row.ClientDescription, must.Sprint(name))
		i := slices.IndexFunc(row.TaskStates.Tasks, func(s cluster.TaskState) bool { return s.Name == "cleanup" })
		must.Eq(t, c.failed, row.TaskStates.Tasks[i].Failed, must.Sprint(name))
	}
}

// The allocation of an orphan is purged while the client removes the orphan.
func TestCore_purgedWhileOrphan(t *testing.T) {
	n := newNode(t)
	n.disk["a"] = client.OrphanRecord("a", []string{"web"}, n.bootID)
	n.startCore()
	n.place(allocation("a", mainTask("web")))
	n.allocs = nil
	n.index++
	n.answer()
	n.run(time.Minute)
	must.Len(t, 0, n.live(""), must.Sprint(n.storyOf()))
}

// A record is lost, and a driver of the node does not start. The client kills the processes of the
// allocation at once. It removes the orphan's record when the driver can no longer start another
// copy.
func TestCore_orphanWithoutADriver(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.killDriver()
	n.driver.launchError = errors.New("the program is gone")
	n.allocs = nil
	n.disk["a"] = client.OrphanRecord("a", []string{"web"}, n.bootID)
	n.startCore()
	n.run(time.Second)
	must.Len(t, 0, n.live(""), must.Sprint(n.storyOf()))
	must.MapLen(t, 1, n.disk)
	n.run(time.Minute)
	must.MapLen(t, 0, n.disk)
}

// lateKill is a shell that gives the processes of an orphan time to end before it kills them.
type lateKill struct{ *shell }

func (s *lateKill) Kill(ref client.TaskRef, reply func([]client.Process, error)) {
	s.node.after(cluster.DefaultKillTimeout, s.epoch, func() { s.shell.Kill(ref, reply) })
}

// The record of an allocation is lost, and its orphan is killed before the driver of the node runs. The allocation
// does not start again before this kill has ended, because it would hit the new copy.
func TestCore_orphanIsKilledBeforeTheNextStart(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.disk["a"] = client.OrphanRecord("a", []string{"web"}, n.bootID)
	n.wrap = func(s *shell) client.Shell { return &lateKill{s} }
	n.startCore()
	n.answer()
	n.run(time.Minute)
	must.Len(t, 1, n.live(""), must.Sprint(n.storyOf()))
	must.MapLen(t, 2, n.tasks, must.Sprint("one more start: ", n.storyOf()))
}

// The records of the client are lost while a task runs, and the servers stop the allocation before the
// next client starts. Bug: the client reported that the task was stopped before it started, and the
// task ran on.
func TestCore_stoppedWithoutARecord(t *testing.T) {
	for name, c := range map[string]struct {
		status     cluster.ClientStatus
		driverDown bool
	}{
		"stopped":                     {status: cluster.ClientRunning},
		"lost":                        {status: cluster.ClientLost},
		"stopped, without the driver": {status: cluster.ClientRunning, driverDown: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newRunning(t, script{}, time.Minute)
			n.crash()
			clear(n.disk)
			if c.driverDown {
				n.killDriver()
				n.driver.launchError = errors.New("the program is gone")
			}
			report := n.servers["a"]
			report.ClientStatus = c.status
			n.servers["a"] = report
			n.stop("a")
			n.startCore()
			n.answer()
			n.run(time.Minute)
			must.SliceEmpty(t, n.live(""), must.Sprint(n.storyOf()))
			must.EqOp(t, cluster.ClientComplete, n.status("a"))
			must.StrContains(t, n.messages("a", "web"), "has no record of a start")
		})
	}
}

// The records of the client are lost while a task runs, and its allocation stays on the node. The next
// client ends the old start before the new one.
func TestCore_startedWithoutARecord(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	before := n.live("web")[0]
	n.crash()
	clear(n.disk)
	n.startCore()
	n.answer()
	n.run(time.Minute)
	must.False(t, before.alive)
	must.SliceLen(t, 1, n.live("web"), must.Sprint(n.storyOf()))
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
}

// If Wait fails occasionally, over months, the task is not lost.
func TestCore_rareWaitErrors(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	web := n.live("web")[0]
	for range 8 {
		waiters := web.waiters
		web.waiters = nil
		for _, w := range waiters {
			w(driver.ExitResult{}, errors.New("a hiccup of the runtime"))
		}
		n.run(24 * time.Hour)
	}
	must.True(t, web.alive, must.Sprint(n.storyOf()))
}

// The grace ends while calls to recover the task fail. SIGKILL must come within a second.
func TestCore_killIsNotDelayedByOtherRetries(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{ignores: true, recoverErr: &driver.Error{Class: driver.Deadline, Call: "RecoverTask", Err: errors.New("no answer")}}
	n.place(allocation("a", &cluster.Task{Name: "web", KillTimeout: 70 * time.Second}))
	n.run(20 * time.Second)
	web := n.live("web")[0]
	leaves(n, "a", time.Second)
	n.killDriver()
	n.run(5 * time.Minute)
	must.LessEq(t, 71*time.Second, web.killed-web.signaled, must.Sprint(n.storyOf()))
}

// A task cannot be killed while its driver is down. The report names the process, not only the
// driver.
func TestCore_undyingWithoutItsDriver(t *testing.T) {
	n := newRunning(t, script{undying: time.Hour, recoverErr: &driver.Error{Class: driver.Deadline, Call: "RecoverTask", Err: errors.New("no answer")}}, 20*time.Second)
	n.killDriver()
	leaves(n, "a", 2*time.Minute)
	w := n.servers["a"].TaskStates.State("web").Waiting
	must.NotNil(t, w)
	must.StrContains(t, w.Detail, "4711")
}

// The client restarts during a stop, and no server answers. The poststop task does not start then,
// and must not prevent the end of the allocation.
func TestCore_poststopWithoutServers(t *testing.T) {
	n := newNode(t)
	n.scripts["cleanup"] = script{runs: []ending{{after: time.Second}}}
	n.scripts["web"] = script{stopTakes: 3 * time.Second}
	n.place(allocation("a", mainTask("web"), hooked("cleanup", cluster.HookPoststop, false)))
	n.run(20 * time.Second)
	leaves(n, "a", time.Second)
	n.crash()
	reaches(n, "a", cluster.ClientComplete, cluster.PoststopLimit+10*time.Second)
}

// The servers gave up an allocation that the client has never received. It reports the end, so that
// drains of the node count it as confirmed.
func TestCore_endOfALostAllocationThatItNeverReceived(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	a := allocation("a", mainTask("web"))
	a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientLost
	n.place(a)
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.SliceEmpty(t, n.live("web"))
}

// The servers have the allocation as lost when the client comes back. Its end is reported, although
// the first report fails.
func TestCore_endOfALostAllocation(t *testing.T) {
	n := newRunning(t, script{}, 20*time.Second)
	n.crash()
	n.allocs = nil // a complete answer contains live allocations only
	n.index++
	n.silent = true // the first report fails: an election
	n.answer()
	n.run(5 * time.Second)
	n.silent = false
	reaches(n, "a", cluster.ClientComplete, time.Minute)
}

// A driver keeps its tasks in its own groups, and it is down while an allocation must stop. The allocation ends only
// when the driver is back and has removed what is left, however long that takes.
func TestCore_cleansOwnGroupsWithTheDriver(t *testing.T) {
	n := newNode(t)
	n.ownCgroup = true
	n.startCore()
	n.scripts["web"] = script{ignores: true}
	n.place(allocation("a", mainTask("web")))
	n.run(time.Minute)
	n.killDriver()
	n.driver.launchError = errors.New("the program is gone")
	leaves(n, "a", 10*time.Minute)
	must.EqOp(t, cluster.ClientRunning, n.status("a"), must.Sprint(n.storyOf()))
	n.driver.launchError = nil
	n.run(10 * time.Minute)
	must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
	must.Len(t, 0, n.live(""))
}
