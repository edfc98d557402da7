//race:skip one goroutine
package client_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// allocation returns an allocation of a service job with these tasks.
func allocation(id cluster.AllocID, tasks ...*cluster.Task) *cluster.Allocation {
	job := &cluster.Job{ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
		Name: "main", Count: 1, Tasks: tasks, RestartPolicy: &cluster.RestartPolicy{Attempts: 2, Interval: time.Hour, Delay: 15 * time.Second, Mode: cluster.RestartFail},
	}}}
	for _, t := range tasks {
		t.Driver = "mock"
	}
	job.Canonicalize()
	return &cluster.Allocation{
		ID: id, Namespace: "default", Name: "web.main[0]", NodeID: "node-1", JobID: "web", Job: job, TaskGroup: "main",
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
	}
}

func mainTask(name string) *cluster.Task {
	return &cluster.Task{Name: name, KillTimeout: 5 * time.Second}
}

func hooked(name string, hook cluster.Hook, sidecar bool) *cluster.Task {
	return &cluster.Task{Name: name, KillTimeout: 5 * time.Second, Lifecycle: &cluster.Lifecycle{Hook: hook, Sidecar: sidecar}}
}

// storyOf returns the events of the machine, without times.
func (n *node) storyOf() string {
	var lines []string
	for _, l := range n.story {
		lines = append(lines, strings.TrimSpace(l[10:]))
	}
	return strings.Join(lines, "\n")
}

func (n *node) status(id cluster.AllocID) cluster.ClientStatus { return n.servers[id].ClientStatus }

func (n *node) eventsOf(id cluster.AllocID, name string) string {
	var texts []string
	if s := n.servers[id].TaskStates.State(name); s != nil {
		for _, e := range s.Events {
			texts = append(texts, e.Type)
		}
	}
	return strings.Join(texts, ", ")
}

// newRunning returns a node on which the task web of the allocation a behaves so, after a time.
func newRunning(t *testing.T, web script, after time.Duration) *node {
	t.Helper()
	n := newNode(t)
	n.scripts["web"] = web
	n.place(allocation("a", mainTask("web")))
	n.run(after)
	return n
}

// reaches lets time pass, and checks the status of an allocation.
func reaches(n *node, id cluster.AllocID, status cluster.ClientStatus, after time.Duration) {
	n.t.Helper()
	n.run(after)
	must.EqOp(n.t, status, n.status(id))
}

// leaves stops an allocation, and lets time pass.
func leaves(n *node, id cluster.AllocID, during time.Duration) {
	n.stop(id)
	n.run(during)
}

// ends stops an allocation, which is complete after a time.
func ends(n *node, id cluster.AllocID, after time.Duration) {
	n.t.Helper()
	n.stop(id)
	reaches(n, id, cluster.ClientComplete, after)
}

// restarts kills the client. The next one runs for a time.
func restarts(n *node, during time.Duration) {
	n.crash()
	n.answer()
	n.run(during)
}

func TestCore_runsReportsAndStops(t *testing.T) {
	n := newRunning(t, script{}, time.Second)
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	must.Nil(t, n.servers["a"].Healthy)
	n.run(10 * time.Second)
	must.NotNil(t, n.servers["a"].Healthy)
	must.True(t, *n.servers["a"].Healthy)
	ends(n, "a", time.Second)
	must.EqOp(t, "Received, Started, Killing, Terminated, Killed", n.eventsOf("a", "web"))
	must.Len(t, 0, n.live(""))
}

// The client first publishes the drivers when all have reported their health. It publishes later
// changes at most once in five seconds.
func TestCore_publish(t *testing.T) {
	n := newNode(t)
	n.run(time.Minute)
	must.SliceLen(t, 1, n.published)
	must.True(t, n.published[0].Drivers["mock"].Healthy)
	for i := range 100 {
		n.core.Fingerprint("mock", n.driver.generation, driver.Fingerprint{Health: driver.Health(1 + i%2)})
		n.run(100 * time.Millisecond)
	}
	n.run(time.Minute)
	must.SliceLen(t, 4, n.published)
	must.True(t, n.published[3].Drivers["mock"].Healthy)
}

// An idle node makes no step until it checks its tasks.
func TestCore_idle(t *testing.T) {
	n := newNode(t)
	for i := range 20 {
		n.place(allocation(cluster.AllocID(fmt.Sprintf("a%02d", i)), mainTask("web")))
	}
	n.run(time.Minute)
	must.Greater(t, n.boot+client.InspectInterval-2*time.Minute, n.core.Step(n.time()))
	// Heartbeats and answers without changes need no step. The next step handles them.
	for range 100 {
		n.core.Contact(guard.Contact{Sent: n.boot}, guard.Contact{Sent: n.boot})
		n.index++
		n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: n.index})
	}
	select {
	case <-n.core.Woken():
		t.Fatal("the core requests a step and has nothing to do")
	default:
	}
	n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: n.index - 1, Complete: true})
	n.run(time.Minute)
	must.Len(t, 20, n.live(""), must.Sprint("an answer of the past stops nothing"))
}

func TestCore_order(t *testing.T) {
	n := newNode(t)
	n.scripts["init"] = script{runs: []ending{{after: 2 * time.Second}}}
	n.scripts["notify"] = script{runs: []ending{{after: time.Second}}}
	n.scripts["cleanup"] = script{runs: []ending{{after: time.Second}}}
	for _, name := range []string{"app", "leader", "proxy", "agent"} {
		n.scripts[name] = script{stopTakes: time.Second}
	}
	leader := mainTask("leader")
	leader.Leader = true
	n.place(allocation("a", mainTask("app"), leader, hooked("init", cluster.HookPrestart, false), hooked("proxy", cluster.HookPrestart, true),
		hooked("notify", cluster.HookPoststart, false), hooked("agent", cluster.HookPoststart, true), hooked("cleanup", cluster.HookPoststop, false)))
	reaches(n, "a", cluster.ClientRunning, 20*time.Second)
	must.NotNil(t, n.servers["a"].Healthy)
	leaves(n, "a", 20*time.Second)
	must.EqOp(t, `a/init/1 runs
a/proxy/2 runs
a/init/1 exits with 0
a/app/3 runs
a/leader/4 runs
a/notify/5 runs
a/agent/6 runs
a/notify/5 exits with 0
a must stop
a/leader/4 gets its signal, grace 5s
a/leader/4 exits with 0
a/app/3 gets its signal, grace 5s
a/app/3 exits with 0
a/proxy/2 gets its signal, grace 5s
a/agent/6 gets its signal, grace 5s
a/proxy/2 exits with 0
a/agent/6 exits with 0
a/cleanup/7 runs
a/cleanup/7 exits with 0
a is reported as complete`, n.storyOf())
}

// A kill timeout of centuries does not overflow.
func TestCore_graceOfCenturies(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.scripts["web"] = script{stopTakes: time.Hour}
	web := mainTask("web")
	web.KillTimeout = client.Never - time.Minute
	n.place(allocation("a", web))
	n.run(time.Second)
	n.stop("a")
	reaches(n, "a", cluster.ClientRunning, 59*time.Minute)
	reaches(n, "a", cluster.ClientComplete, 2*time.Minute)
}

// A task gets its whole grace, and is killed within a second after it.
func TestCore_grace(t *testing.T) {
	web := mainTask("web")
	web.ShutdownDelay = 3 * time.Second
	stop := func(change ...func(*cluster.Allocation)) (n *node, signalAfter, killAfter time.Duration) {
		n = newNode(t)
		n.scripts["web"] = script{ignores: true}
		a := allocation("a", web)
		a.Job.TaskGroups[0].ShutdownDelay = 2 * time.Second
		n.place(a)
		n.run(time.Second)
		began := n.boot
		process := n.live("web")[0]
		n.stop("a", change...)
		reaches(n, "a", cluster.ClientComplete, time.Minute)
		return n, process.signaled - began, process.killed - process.signaled
	}
	_, signal, kill := stop()
	must.Between(t, 5*time.Second, signal, 5*time.Second+50*time.Millisecond)
	must.Between(t, 5*time.Second, kill, 6*time.Second)

	_, signal, kill = stop(func(a *cluster.Allocation) { a.DesiredTransition.NoShutdownDelay = true })
	must.Between(t, 0, signal, 50*time.Millisecond)
	must.Between(t, 5*time.Second, kill, 6*time.Second)
}

// The driver dies one second after the start of a stop. The task still gets its whole grace and is
// killed at the end, although no call to stop it is in flight.
func TestCore_driverDiesDuringStop(t *testing.T) {
	n := newRunning(t, script{ignores: true}, time.Second)
	process := n.live("web")[0]
	leaves(n, "a", time.Second)
	n.killDriver()
	n.run(time.Minute)
	must.Between(t, 5*time.Second, process.killed-process.signaled, 6*time.Second)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

// The client restarts during the grace. The task gets exactly the rest of its grace.
func TestCore_restartDuringGrace(t *testing.T) {
	n := newRunning(t, script{ignores: true}, time.Second)
	process := n.live("web")[0]
	leaves(n, "a", 3*time.Second)
	n.crash()
	n.run(time.Minute)
	must.Between(t, 5*time.Second, process.killed-process.signaled, 6*time.Second)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

// The boot clock goes back before the client restarts during the grace. Bug: the stop ended half an hour
// late, because the grace began in the future.
func TestCore_clockGoesBack(t *testing.T) {
	n := newRunning(t, script{ignores: true}, time.Second)
	leaves(n, "a", 3*time.Second)
	n.boot -= 30 * time.Minute
	n.crash()
	n.run(time.Minute)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

func TestCore_restartTakesTasksOver(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	restarts(n, time.Second)
	must.Len(t, 1, n.live("web"))
	n.exit(n.live("web")[0], 3, 0)
	n.run(20 * time.Second)
	must.EqOp(t, "a/web/2", string(n.live("web")[0].id))
	must.EqOp(t, uint64(1), n.servers["a"].TaskStates.State("web").Restarts)
}

// A task ended while no client ran. The next client reports its true result.
func TestCore_exitWhileAway(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.crash()
	n.exit(n.live("web")[0], 7, 0)
	n.answer()
	n.run(time.Second)
	must.StrContains(t, fmt.Sprint(n.servers["a"].TaskStates.State("web").Events), "Exit Code: 7")
}

func TestCore_restartPolicy(t *testing.T) {
	t.Run("fail", func(t *testing.T) {
		n := newNode(t)
		n.scripts["web"] = script{runs: []ending{{after: time.Second, code: 1}}}
		n.place(allocation("a", mainTask("web"), mainTask("other")))
		reaches(n, "a", cluster.ClientFailed, 2*time.Minute)
		must.False(t, *n.servers["a"].Healthy)
		must.StrContains(t, fmt.Sprint(n.servers["a"].TaskStates.State("web").Events), "Exceeded allowed attempts 2 in interval 1h0m0s")
		must.EqOp(t, 3, strings.Count(n.storyOf(), "exits with 1"))
		must.Len(t, 0, n.live(""))
	})
	t.Run("delay", func(t *testing.T) {
		n := newNode(t)
		n.scripts["web"] = script{runs: []ending{{after: time.Second, code: 1}}}
		a := allocation("a", mainTask("web"))
		a.Job.TaskGroups[0].RestartPolicy.Mode = cluster.RestartDelay
		n.place(a)
		n.run(59 * time.Minute)
		must.EqOp(t, 3, strings.Count(n.storyOf(), "exits with 1"))
		n.run(3 * time.Minute)
		must.EqOp(t, 6, strings.Count(n.storyOf(), "exits with 1"))
		must.EqOp(t, cluster.ClientRunning, n.status("a"))
	})
	t.Run("batch", func(t *testing.T) {
		n := newNode(t)
		n.scripts["work"] = script{runs: []ending{{after: time.Second, code: 1}, {after: time.Second}}}
		a := allocation("a", mainTask("work"))
		a.Job.Type = cluster.JobBatch
		n.place(a)
		reaches(n, "a", cluster.ClientComplete, time.Minute)
		must.EqOp(t, 2, len(n.tasks))
	})
}

// Wait returns no result for a stopped task, but Inspect returns it.
func TestCore_waitFails(t *testing.T) {
	n := newRunning(t, script{waitError: errors.New("executor: plugin is shut down"), ignores: true}, time.Second)
	ends(n, "a", time.Minute)
	must.StrContains(t, fmt.Sprint(n.servers["a"].TaskStates.State("web").Events), "Exit Code: 137")
}

// A driver that dies repeatedly is restarted with backoff.
func TestCore_driverKeepsDying(t *testing.T) {
	n := newNode(t)
	n.place(allocation("a", mainTask("web")))
	for range 600 {
		n.run(time.Second)
		if !n.driver.down {
			n.killDriver()
		}
	}
	must.Between(t, 5, n.driver.launches, 10)
	must.Len(t, 1, n.live("web"))
	n.run(5 * time.Minute)
	n.exit(n.live("web")[0], 0, 0)
	n.run(time.Minute)
	must.EqOp(t, "a/web/2", string(n.live("web")[0].id), must.Sprint("the client still watches the task"))
}

// The minimum healthy time counts from the last start of a task.
func TestCore_healthAfterRestart(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: 8 * time.Second, code: 1}, {}}}
	n.place(allocation("a", mainTask("web")))
	n.run(30 * time.Second) // it has been running again since second 23
	must.Nil(t, n.servers["a"].Healthy)
	n.run(5 * time.Second)
	must.NotNil(t, n.servers["a"].Healthy)
	must.True(t, *n.servers["a"].Healthy)
}

// The verdict comes at the healthy deadline, also if the client is restarted every minute.
func TestCore_healthyDeadline(t *testing.T) {
	n := newNode(t)
	n.scripts["init"] = script{}
	n.place(allocation("a", mainTask("web"), hooked("init", cluster.HookPrestart, false)))
	for range 4 {
		n.run(time.Minute)
		n.crash()
		n.answer()
	}
	n.run(50 * time.Second)
	must.Nil(t, n.servers["a"].Healthy)
	n.run(11 * time.Second)
	must.NotNil(t, n.servers["a"].Healthy)
	must.False(t, *n.servers["a"].Healthy)
}

func TestCore_startErrors(t *testing.T) {
	start := func(errs ...error) *node {
		n := newRunning(t, script{startErrors: errs}, time.Minute)
		return n
	}
	recoverable := &driver.Error{Class: driver.Recoverable, Call: "StartTask", Err: errors.New("no image yet")}
	n := start(recoverable)
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	n = start(errors.New("unknown key comand"))
	must.EqOp(t, cluster.ClientFailed, n.status("a"))
	must.StrContains(t, fmt.Sprint(n.servers["a"].TaskStates.State("web").Events), "unknown key comand")
}

// The driver does not answer a start for ten minutes, and would then start the task. The client
// kills the driver, so that there is never a second copy of the task.
func TestCore_startHangs(t *testing.T) {
	n := newRunning(t, script{startTakes: 10 * time.Minute}, time.Second)
	n.scripts["web"] = script{}
	n.run(20 * time.Minute)
	must.StrContains(t, n.storyOf(), "the driver dies")
	must.Len(t, 1, n.live("web"))
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
}

// A driver that downloads images may have a longer start timeout.
func TestCore_startTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		timeouts map[string]time.Duration
		runs     bool
	}{
		"its own":             {map[string]time.Duration{"mock": 15 * time.Minute}, true},
		"that of all drivers": {map[string]time.Duration{"mock": 0, "other": 15 * time.Minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.startTimeouts = test.timeouts
			n.crash()
			n.scripts["web"] = script{startTakes: 10 * time.Minute}
			n.place(allocation("a", mainTask("web")))
			n.run(11 * time.Minute)
			must.Eq(t, test.runs, n.status("a") == cluster.ClientRunning)
			must.Eq(t, !test.runs, strings.Contains(n.storyOf(), "the driver dies"))
		})
	}
	_, err := client.New(client.Options{
		Node: "node-1", Shell: &shell{}, BootID: "boot-1", StartTimeouts: map[string]time.Duration{"mock": -1},
		NewTaskID: func(cluster.AllocID, string) driver.TaskID { return "" },
	})
	must.ErrorContains(t, err, "negative")
}

// While a process is in state D, its allocation is not reported as ended.
func TestCore_stateD(t *testing.T) {
	n := newRunning(t, script{ignores: true, undying: time.Hour}, time.Minute)
	n.stop("a")
	reaches(n, "a", cluster.ClientRunning, 30*time.Minute)
	wait := n.servers["a"].TaskStates.State("web").Waiting
	must.NotNil(t, wait)
	must.EqOp(t, "process 4711 (dd) in state D does not die", wait.Detail)
	n.crash()
	reaches(n, "a", cluster.ClientRunning, 10*time.Minute)
	reaches(n, "a", cluster.ClientComplete, time.Hour)
}

// A main task is in state D. Its sidecar stops nevertheless, within the stop time, and the poststop
// task waits. A regression: the sidecar ran on after the servers had freed the volume of the
// allocation for another node.
func TestCore_sidecarOfAnUnkillableTask(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.scripts["web"] = script{ignores: true, undying: time.Hour}
	n.place(allocation("a", hooked("proxy", cluster.HookPrestart, true), mainTask("web"), hooked("bye", cluster.HookPoststop, false)))
	n.run(time.Minute)
	must.SliceLen(t, 1, n.live("proxy"))
	leaves(n, "a", 4*time.Second)
	must.SliceLen(t, 1, n.live("proxy"), must.Sprint("the main task has its kill timeout"))
	n.run(10 * time.Second)
	must.SliceEmpty(t, n.live("proxy"))
	must.SliceLen(t, 1, n.live("web"))
	restarts(n, 30*time.Minute)
	must.SliceEmpty(t, n.live("bye"))
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	n.run(time.Hour)
	must.StrContains(t, n.storyOf(), "a/bye")
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

func TestCore_unknownSignal(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{stopError: errors.New("unknown signal SIGPOLL")}
	n.place(allocation("a", func() *cluster.Task { task := mainTask("web"); task.KillSignal = "SIGPOLL"; return task }()))
	n.run(time.Second)
	ends(n, "a", time.Second)
	must.StrContains(t, fmt.Sprint(n.servers["a"].TaskStates.State("web").Events), "The driver could not send SIGPOLL")
}

// The driver cannot take a task over. The client destroys the task, and then starts it again.
func TestCore_recoverFails(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.scripts["web"] = script{recoverErr: errors.New("failed to decode driver config: EOF")}
	n.killDriver()
	n.run(time.Minute)
	must.Len(t, 1, n.live("web"))
	must.EqOp(t, "a/web/2", string(n.live("web")[0].id))
}

func TestCore_reboot(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.exit(n.live("web")[0], 137, 9)
	n.boot, n.bootID, n.events = time.Minute, "boot-2", nil
	n.tasks = map[driver.TaskID]*task{}
	n.crash()
	n.run(time.Minute)
	must.Len(t, 0, n.live("web"), must.Sprint("nothing starts before the servers have answered"))
	n.answer()
	n.run(time.Minute)
	must.Len(t, 1, n.live("web"))
}

func TestCore_serversAway(t *testing.T) {
	n := newNode(t)
	a := allocation("a", mainTask("web"))
	a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
	n.place(a)
	n.place(allocation("b", mainTask("web")))
	n.run(time.Second)
	n.silent = true
	n.run(50 * time.Second)
	n.core.Contact(guard.Contact{Sent: n.boot}, guard.Contact{Sent: n.boot})
	n.run(50 * time.Second)
	must.Len(t, 2, n.live(""))
	n.run(time.Hour)
	must.Len(t, 1, n.live(""))
	n.silent = false
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.EqOp(t, cluster.ClientRunning, n.status("b"))
}

// Bug: a StopOnClientAfter shorter than the time between two heartbeats stopped healthy tasks, and no event
// named the cause. The client counts from the last answer, and stops only when the next heartbeat is overdue.
func TestCore_stopAfterBelowTheHeartbeats(t *testing.T) {
	n := newNode(t)
	a := allocation("a", mainTask("web"))
	a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = 5 * time.Second
	n.place(a)
	previous := guard.Contact{Sent: n.boot, TTL: 20 * time.Second}
	n.core.Contact(previous, previous)
	for range 20 {
		n.run(7 * time.Second)
		contact := guard.Contact{Sent: n.boot, TTL: 20 * time.Second}
		n.core.Contact(previous, contact)
		previous = contact
	}
	must.EqOp(t, "Received, Started", n.eventsOf("a", "web"))
	must.Len(t, 1, n.live("web"))
	n.silent = true
	n.run(19 * time.Second)
	must.Len(t, 1, n.live("web"))
	n.run(2 * time.Second)
	n.silent = false
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.EqOp(t, "Received, Started, Disconnected, Killing, Terminated, Killed", n.eventsOf("a", "web"))
	must.StrContains(t, n.messages("a", "web"), "no contact with the servers for 20s: stop_on_client_after is 5s, and shorter than the time in which a heartbeat is due")
}

// A client is frozen while the deadline passes, and its task is killed meanwhile. When it continues, the
// servers answer its heartbeat before it has made a step. It stops the allocation as a client that was
// not frozen, because the servers may have confirmed the end. Bug: it restarted the task like a crash.
func TestCore_frozenWhileServersAreAway(t *testing.T) {
	n := newNode(t)
	a := allocation("a", mainTask("web"), mainTask("killed"))
	a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
	n.place(a)
	n.place(allocation("b", mainTask("web")))
	previous := n.boot
	for range 20 { // heartbeats that no step takes at once
		n.run(10 * time.Second)
		n.core.Contact(guard.Contact{Sent: previous}, guard.Contact{Sent: n.boot})
		previous = n.boot
	}
	must.Len(t, 3, n.live(""))
	n.boot += time.Hour
	n.core.Contact(guard.Contact{Sent: previous}, guard.Contact{Sent: n.boot})
	n.core.Contact(guard.Contact{Sent: n.boot}, guard.Contact{Sent: n.boot + 1})
	n.exit(n.live("killed")[0], 137, 9)
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.EqOp(t, "Received, Started, Disconnected, Terminated, Not Restarting", n.eventsOf("a", "killed"))
	must.EqOp(t, "Received, Started, Disconnected, Killing, Terminated, Killed", n.eventsOf("a", "web"))
	must.EqOp(t, cluster.ClientRunning, n.status("b"))
}

// The servers do not get a report, and the client restarts. The next client repeats the report,
// although the servers have the right status and verdict.
func TestCore_reportAfterRestart(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	must.NotNil(t, n.servers["a"].Healthy)
	n.silent = true
	n.exit(n.live("web")[0], 3, 0)
	n.run(time.Minute)
	must.EqOp(t, "Received, Started", n.eventsOf("a", "web"))
	n.crash()
	n.silent = false
	n.answer()
	n.run(time.Second)
	must.EqOp(t, "Received, Started, Terminated, Restarting, Started", n.eventsOf("a", "web"))
}

// Answers of another cluster and old answers stop nothing.
func TestCore_agreement(t *testing.T) {
	n := newRunning(t, script{}, time.Second)
	allocs, index := n.allocs, n.index
	n.allocs, n.index = nil, 0
	n.answer()
	n.run(time.Minute)
	must.Len(t, 1, n.live(""))
	n.allocs, n.index = allocs, index
	n.answer()
	n.run(time.Minute)
	must.Len(t, 1, n.live(""))
	n.core.Servers(client.Changes{ClusterID: "cluster-2", Index: index + 10, Complete: true})
	n.run(time.Minute)
	must.Len(t, 1, n.live(""))
	n.allocs, n.index = nil, index+1
	n.answer()
	n.run(time.Minute)
	must.Len(t, 0, n.live(""))
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

// While the client ignores the servers, it reports its drivers as unhealthy.
func TestCore_foreignServers(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.core.Servers(client.Changes{ClusterID: "cluster-2", Index: 1, Complete: true})
	n.run(time.Minute)
	must.Len(t, 1, n.live(""))
	last := n.published[len(n.published)-1].Drivers["mock"]
	must.False(t, last.Healthy)
	must.StrContains(t, last.HealthDescription, "another cluster")
	n.answer()
	n.run(time.Minute)
	must.True(t, n.published[len(n.published)-1].Drivers["mock"].Healthy)
}

// The servers were replaced by a new cluster. A node with nothing of its old cluster left joins the new
// one when it gets all its allocations, and starts them. It ignored the new servers until its restart.
func TestCore_joinsTheNextCluster(t *testing.T) {
	n := newNode(t)
	var log strings.Builder
	n.logger = slog.New(slog.NewTextHandler(&log, nil))
	n.crash()
	n.place(allocation("a", mainTask("web")))
	n.run(time.Minute)
	b := allocation("b", mainTask("web"))
	b.NodeID = n.allocs[0].NodeID
	next := func(all bool) {
		n.core.Servers(client.Changes{ClusterID: "cluster-2", Index: 3, All: all, Complete: true, Allocs: []*cluster.Allocation{b.Copy()}, Known: []cluster.AllocID{"b"}})
		n.run(time.Second)
	}
	for range 10 * 60 {
		next(true)
	}
	must.True(t, n.core.Foreign())
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	must.MapNotContainsKey(t, n.servers, "b")
	must.EqOp(t, 10, strings.Count(log.String(), "another cluster"), must.Sprint("one line a minute"))

	ends(n, "a", time.Minute)
	next(false)
	must.MapNotContainsKey(t, n.servers, "b", must.Sprint("some allocations may be missing in the answer"))
	n.crash()
	n.run(time.Minute)
	next(true)
	must.False(t, n.core.Foreign())
	reaches(n, "b", cluster.ClientRunning, time.Minute)
	must.StrContains(t, log.String(), "it joins the other cluster")

	n.crash() // with the record of "a", which has ended
	n.run(time.Second)
	next(true)
	must.False(t, n.core.Foreign())
	n.run(time.Minute)
	must.Len(t, 1, n.live("web"))
	must.EqOp(t, cluster.ClientRunning, n.status("b"))
}

// Bug: a node kept the index of its old cluster when it joined a younger one. All answers of the younger one were
// older than this index, so the node started nothing.
func TestCore_joinsAYoungerCluster(t *testing.T) {
	n := newNode(t)
	n.index = 1000
	n.place(allocation("a", mainTask("web")))
	reaches(n, "a", cluster.ClientRunning, time.Minute)
	ends(n, "a", time.Minute)
	for index := range uint64(3) {
		b := allocation("b", mainTask("web"))
		b.NodeID, b.AllocModifyIndex = n.allocs[0].NodeID, 1
		n.core.Servers(client.Changes{ClusterID: "cluster-2", Index: index + 1, All: true, Complete: true, Allocs: []*cluster.Allocation{b}, Known: []cluster.AllocID{"b"}})
		n.run(time.Minute)
		must.EqOp(t, cluster.ClientRunning, n.status("b"), must.Sprint("index ", index+1))
	}
	must.Len(t, 1, n.live("web"))
}

// A node has the cluster of its allocations that have not ended.
func TestClusterOf(t *testing.T) {
	old, live, orphan := &client.Record{ClusterID: "old", Ended: true}, &client.Record{ClusterID: "new"}, new(client.Record)
	volumes := &client.Record{ClusterID: "volumes", Ended: true, VolumesLeft: true}
	for expected, records := range map[string][]*client.Record{
		"": {orphan}, "new": {orphan, old, live}, "old": {orphan, old}, "volumes": {old, volumes, live},
	} {
		must.Eq(t, expected, client.ClusterOf(records))
	}
}

func TestCore_fullDisk(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.fullDisk = true
	n.place(allocation("b", mainTask("web")))
	n.run(time.Minute)
	must.Len(t, 1, n.live(""))
	must.EqOp(t, "the client cannot write its record to the disk, which is full", n.servers["b"].TaskStates.State("web").Waiting.Detail)
	must.EqOp(t, "waiting for the disk: the client cannot write its record to the disk, which is full", n.servers["b"].ClientDescription)
	ends(n, "a", time.Minute)
	n.fullDisk = false
	reaches(n, "b", cluster.ClientRunning, time.Minute)
	must.StrNotContains(t, n.servers["b"].ClientDescription, "disk")
}

// A full disk is freed of ended allocations, the oldest first, until it has room for a record. Bug: the client kept the
// folders of fifty, so the disk stayed full.
func TestCore_fullDiskIsFreed(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: time.Second}}}
	for i := range 5 {
		batch := allocation(cluster.AllocID(fmt.Sprint("old-", i)), mainTask("web"))
		batch.Job.Type = cluster.JobBatch
		n.place(batch)
		reaches(n, batch.ID, cluster.ClientComplete, time.Minute)
	}
	n.run(time.Minute)
	must.SliceEmpty(t, n.discarded)
	n.fullDisk, n.roomAfter = true, 3
	n.scripts["web"] = script{}
	n.place(allocation("b", mainTask("web")))
	reaches(n, "b", cluster.ClientRunning, 5*time.Second)
	must.Eq(t, []cluster.AllocID{"old-0", "old-1", "old-2"}, n.discarded)
	n.run(time.Minute)
	must.Len(t, 3, n.discarded)
}

// The client was down for longer than the grace of a task that had to stop. The task then gets its
// signal and its whole grace, because the driver was never requested to stop it.
func TestCore_clientAwayBeforeTheSignal(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.scripts["web"] = script{stopTakes: 3 * time.Second}
	a := allocation("a", mainTask("web"))
	a.Job.TaskGroups[0].ShutdownDelay = 5 * time.Second
	n.place(a)
	n.run(time.Second)
	process := n.live("web")[0]
	leaves(n, "a", time.Second)
	n.boot += 10 * time.Minute // no client runs
	restarts(n, time.Minute)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
	must.Positive(t, process.signaled)
	must.EqOp(t, 0, process.killed)
}

// The machine restarts while a task waits for its restart, and the servers stop the allocation in
// the first step, at time zero of the boot clock. Bug: the core took this time, at which the
// poststop phase started, for a missing time, and its step did not end.
func TestCore_stopAtTheBootOfTheMachine(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: time.Second, code: 1}}}
	n.scripts["cleanup"] = script{runs: []ending{{after: time.Second}}}
	n.place(allocation("a", mainTask("web"), hooked("cleanup", cluster.HookPoststop, false)))
	n.run(5 * time.Second)
	must.SliceEmpty(t, n.live("web"))
	n.reboot()
	n.boot = 0
	ends(n, "a", time.Minute)
	must.StrContains(t, n.eventsOf("a", "cleanup"), "Terminated")
}
