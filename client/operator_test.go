package client_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// requested is an operator's request and its answer.
type requested struct {
	answers int
	err     error
}

// restart requests a restart from the node, as an operator does.
func (n *node) restart(id cluster.AllocID, task string, all bool) *requested {
	n.log("an operator restarts %s/%s, all %t", id, task, all)
	a := new(requested)
	n.core.Operator().Restart(id, task, all, func(err error) { a.answers, a.err = a.answers+1, err })
	return a
}

func (n *node) taskState(id cluster.AllocID, name string) cluster.TaskState {
	s := n.servers[id].TaskStates.State(name)
	must.NotNil(n.t, s)
	return *s
}

// Bug: a task that ended by itself before the signal of an operator's restart counted for the restart policy.
// The policy allows two restarts in an hour, and the third one failed the allocation.
func TestRestart_endsBeforeTheSignal(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	web := mainTask("web")
	web.ShutdownDelay = 3 * time.Second
	n.place(allocation("a", web))
	n.run(time.Minute)
	for range 5 {
		must.Len(t, 1, n.live("web"))
		process := n.live("web")[0]
		answer := n.restart("a", "web", false)
		n.run(time.Second)
		must.NoError(t, answer.err)
		n.exit(process, 1, 0)
		n.run(10 * time.Second)
	}
	must.Len(t, 1, n.live("web"))
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	must.EqOp(t, 5, n.taskState("a", "web").Restarts)
}

// An operator's restart gives a task its shutdown delay, its signal and its grace, and starts it
// again at once. The restart policy allows two restarts in an hour, and counts none of five
// restarts by an operator.
func TestRestart_isNoFailure(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.scripts["web"] = script{ignores: true}
	web := mainTask("web")
	web.ShutdownDelay = 3 * time.Second
	n.place(allocation("a", web))
	n.run(time.Minute)
	for range 5 {
		began, process := n.boot, n.live("web")[0]
		answer := n.restart("a", "web", false)
		n.run(time.Minute)
		must.EqOp(t, 1, answer.answers)
		must.NoError(t, answer.err)
		must.Between(t, 3*time.Second, process.signaled-began, 3*time.Second+50*time.Millisecond)
		must.Between(t, 5*time.Second, process.killed-process.signaled, 6*time.Second)
		must.Between(t, process.ended, n.live("web")[0].started, process.ended+50*time.Millisecond)
	}
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	must.EqOp(t, 5, n.taskState("a", "web").Restarts)
	must.EqOp(t, "Restart Signaled, Killing, Terminated, Restarting, Started, Restart Signaled, Killing, Terminated, Restarting, Started", n.eventsOf("a", "web"))
	// The task did not run between its starts, so each restart has ended the health of the allocation.
	must.False(t, *n.servers["a"].Healthy)
	n.run(5 * time.Minute)
	must.True(t, *n.servers["a"].Healthy)
}

// A restart of all tasks stops and starts them in the usual order. The poststop task runs only at
// the end of the allocation.
func TestRestart_all(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.scripts["init"] = script{runs: []ending{{after: 2 * time.Second}}}
	n.scripts["cleanup"] = script{runs: []ending{{after: time.Second}}}
	for _, name := range []string{"app", "leader", "proxy"} {
		n.scripts[name] = script{stopTakes: time.Second}
	}
	leader := mainTask("leader")
	leader.Leader = true
	n.place(allocation("a", mainTask("app"), leader, hooked("init", cluster.HookPrestart, false), hooked("proxy", cluster.HookPrestart, true),
		hooked("cleanup", cluster.HookPoststop, false)))
	n.run(20 * time.Second)
	n.story = nil
	answer := n.restart("a", "", true)
	n.run(20 * time.Second)
	must.NoError(t, answer.err)
	leaves(n, "a", 20*time.Second)
	must.EqOp(t, `an operator restarts a/, all true
a/leader/4 gets its signal, grace 5s
a/leader/4 exits with 0
a/app/3 gets its signal, grace 5s
a/app/3 exits with 0
a/proxy/2 gets its signal, grace 5s
a/proxy/2 exits with 0
a/init/5 runs
a/proxy/6 runs
a/init/5 exits with 0
a/app/7 runs
a/leader/8 runs
a must stop
a/leader/8 gets its signal, grace 5s
a/leader/8 exits with 0
a/app/7 gets its signal, grace 5s
a/app/7 exits with 0
a/proxy/6 gets its signal, grace 5s
a/proxy/6 exits with 0
a/cleanup/9 runs
a/cleanup/9 exits with 0
a is reported as complete`, n.storyOf())
}

func TestRestart_refused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before   func(n *node)
		alloc    cluster.AllocID
		task     string
		all      bool
		expected error
		text     string
	}{
		"unknown allocation": {nil, "b", "", false, client.ErrUnknownAlloc, "the node does not have the allocation"},
		"unknown task":       {nil, "a", "db", false, client.ErrUnknownTask, `the allocation does not have the task "db": it has web, init`},
		"dead task":          {nil, "a", "init", false, client.ErrNotRunning, `not running: task "init" is dead`},
		"stopping":           {func(n *node) { n.stop("a"); n.run(time.Second) }, "a", "", false, client.ErrNotRunning, "not running: the allocation is stopping"},
		"stopping, all":      {func(n *node) { n.stop("a"); n.run(time.Second) }, "a", "", true, client.ErrNotRunning, "not running: the allocation is stopping"},
		"ended":              {func(n *node) { n.stop("a"); n.run(time.Minute) }, "a", "", false, client.ErrNotRunning, "not running: the allocation has ended"},
		"full disk":          {func(n *node) { n.fullDisk = true; n.restart("a", "", false); n.run(time.Second) }, "a", "", false, client.ErrDisk, "the client cannot write its records to the disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.scripts["web"] = script{stopTakes: 4 * time.Second}
			n.scripts["init"] = script{runs: []ending{{after: time.Second}}}
			n.place(allocation("a", mainTask("web"), hooked("init", cluster.HookPrestart, false)))
			n.run(time.Minute)
			if tt.before != nil {
				tt.before(n)
			}
			answer := n.restart(tt.alloc, tt.task, tt.all)
			n.run(time.Millisecond)
			must.EqOp(t, 1, answer.answers)
			must.ErrorIs(t, answer.err, tt.expected)
			must.EqError(t, answer.err, tt.text)
		})
	}
}

// If a restart cannot be saved to the disk, the operator gets an error, and no task stops until it
// is saved.
func TestRestart_waitsForTheDisk(t *testing.T) {
	t.Parallel()
	n := newRunning(t, script{}, time.Minute)
	n.fullDisk = true
	answer := n.restart("a", "", false)
	n.run(time.Minute)
	must.ErrorIs(t, answer.err, client.ErrDisk)
	must.EqOp(t, "a/web/1", n.live("web")[0].id)
	n.fullDisk = false
	n.run(time.Minute)
	must.EqOp(t, "a/web/2", n.live("web")[0].id)
}

// The client dies at each effect of a restart. If it had accepted the restart, the task starts
// again. If the client dies during the start, this counts as a restart of the policy, which allows
// one.
func TestRestart_clientDiesAtEachEffect(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		for dieAt := 1; ; dieAt++ {
			n := newNode(t)
			n.scripts["web"] = script{stopTakes: time.Second}
			a := allocation("a", mainTask("web"))
			a.Job.TaskGroups[0].RestartPolicy = &cluster.RestartPolicy{Attempts: 1, Interval: time.Hour, Mode: cluster.RestartFail}
			n.place(a)
			n.run(time.Minute)
			n.dieAt = n.effects + dieAt
			answer := n.restart("a", "", all)
			n.run(time.Minute)
			if n.dieAt != 0 {
				must.Greater(t, 5, dieAt)
				break
			}
			must.EqOp(t, cluster.ClientRunning, n.status("a"), must.Sprint("the client dies at ", dieAt, n.story))
			must.SliceLen(t, 1, n.live("web"))
			if answer.answers > 0 {
				must.NoError(t, answer.err)
				must.NotEqOp(t, "a/web/1", n.live("web")[0].id, must.Sprint("an accepted restart is lost when the client dies at ", dieAt))
			}
		}
	}
}

// A stop during a restart ends the allocation. The grace of the task continues.
func TestRestart_stoppedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		n := newNode(t)
		n.scripts["web"] = script{ignores: true}
		a := allocation("a", mainTask("web"))
		a.Job.TaskGroups[0].ShutdownDelay = time.Hour
		n.place(a)
		n.run(time.Minute)
		process := n.live("web")[0]
		n.restart("a", "", all)
		n.run(2 * time.Second)
		ends(n, "a", time.Minute)
		must.Between(t, 5*time.Second, process.killed-process.signaled, 6*time.Second)
	}
}

// A stop between the stop and the start of a restart of all tasks ends an allocation that has run: its poststop task runs,
// and its data is kept. Bug: in all tests of such a stop a task had started again, or still ran.
func TestRestart_stoppedBeforeTheStart(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		n := newDisks(t)
		n.scripts["cleanup"] = script{runs: []ending{{after: time.Second}}}
		n.place(disk("a", "", mainTask("web"), hooked("cleanup", cluster.HookPoststop, false)))
		n.run(time.Minute)
		n.scripts["web"] = script{hangsAt: "StartTask"}
		must.NoError(t, n.restart("a", "", true).err)
		n.run(10 * time.Second)
		if crash {
			restarts(n, 10*time.Second)
		}
		must.SliceEmpty(t, n.live(""))
		must.True(t, n.taskState("a", "web").StartedAt.IsZero())
		ends(n, "a", time.Minute)
		must.EqOp(t, "Received, Started, Terminated", n.eventsOf("a", "cleanup"))
		must.True(t, n.servers["a"].DataOut.Kept())
		must.EqOp(t, "a a", n.data.content("a"))
	}
}

// If an allocation restarts before its verdict, the minimum healthy time counts from the last
// start.
func TestRestart_beforeTheVerdict(t *testing.T) {
	t.Parallel()
	n := newRunning(t, script{}, 8*time.Second)
	n.restart("a", "web", false)
	n.run(8 * time.Second)
	must.Nil(t, n.servers["a"].Healthy)
	n.run(4 * time.Second)
	must.NotNil(t, n.servers["a"].Healthy)
	must.True(t, *n.servers["a"].Healthy)
}

// A follower of a start of a task is called once, at its end.
func TestFollow(t *testing.T) {
	t.Parallel()
	n := newRunning(t, script{}, time.Minute)
	var infos []client.TaskInfo
	n.core.Operator().Tasks("a", func(got []client.TaskInfo, err error) { infos = got; must.NoError(t, err) })
	n.core.Operator().Tasks("b", func(_ []client.TaskInfo, err error) { must.ErrorIs(t, err, client.ErrUnknownAlloc) })
	n.run(time.Second)
	must.SliceLen(t, 1, infos)
	must.True(t, infos[0].Running)
	must.EqOp(t, "running", infos[0].State)
	must.True(t, infos[0].Capabilities.HostCgroup)
	ref := infos[0].Ref
	ends := map[string]int{}
	n.core.Operator().Follow(ref, func() { ends["follows"]++ })
	left := n.core.Operator().Follow(ref, func() { ends["leaves"]++ })
	n.core.Operator().Signaled(ref, "SIGHUP")
	n.run(time.Second)
	left()
	n.run(time.Second)
	must.MapEmpty(t, ends)
	n.restart("a", "", false)
	n.run(time.Minute)
	n.core.Operator().Follow(ref, func() { ends["comes late"]++ })
	n.core.Operator().Signaled(ref, "SIGHUP")
	n.run(time.Second)
	must.Eq(t, map[string]int{"follows": 1, "comes late": 1}, ends)
	must.EqOp(t, "Received, Started, Signaling, Restart Signaled, Killing, Terminated, Restarting, Started", n.eventsOf("a", "web"))
}
