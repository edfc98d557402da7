package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// early is a driver whose Wait answers with code 0 when the task gets its signal. The task ends four
// seconds later with code 7.
func early(change ...func(*script)) script {
	sc := script{waitEarly: true, stopWaits: true, stopTakes: 4 * time.Second, stopCode: 7}
	for _, f := range change {
		f(&sc)
	}
	return sc
}

// running returns a node with a running task, whose kill timeout is ten seconds.
func running(t *testing.T, sc script, ownCgroup bool) (*node, *task) {
	n := newNode(t)
	if ownCgroup {
		n.ownCgroup = true
		n.startCore()
	}
	n.scripts["web"] = sc
	n.place(allocation("a", &cluster.Task{Name: "web", Driver: "mock", KillTimeout: 10 * time.Second}))
	n.run(20 * time.Second)
	must.Len(t, 1, n.live("web"))
	return n, n.live("web")[0]
}

// The client used to take an early answer of Wait for the end of the task: it killed the task and
// reported code 0.
func TestEnding_waitAnswersEarly(t *testing.T) {
	for _, test := range []struct {
		name   string
		script script
		// trouble happens one second after the stop.
		trouble func(*node)
		code    string
		killed  bool          // at the end of the grace
		ended   time.Duration // the latest end of the allocation, after the stop
	}{
		{name: "stop", script: early(), code: "Exit Code: 7", ended: 5 * time.Second},
		{name: "task ignores its signal", script: early(func(s *script) { s.ignores = true }), code: "Exit Code: 137, Signal: 9", killed: true, ended: 11 * time.Second},
		{name: "stop answers late", script: early(func(s *script) { s.stopLag = 3 * time.Second }), code: "Exit Code: 7", ended: 8 * time.Second},
		{name: "stop answers late after the grace", script: early(func(s *script) { s.ignores, s.stopLag = true, 3*time.Second }), code: "Exit Code: 137", killed: true, ended: 14 * time.Second},
		{name: "stop answers at once", script: early(func(s *script) { s.stopWaits = false }), code: "Exit Code: 7", ended: 15 * time.Second},
		{name: "client dies", script: early(), trouble: dies, code: "Exit Code: 7", ended: 5 * time.Second},
		{name: "driver dies", script: early(), trouble: (*node).killDriver, code: "Exit Code: 7", ended: 6 * time.Second},
		{name: "client and driver die", script: early(), trouble: func(n *node) { n.killDriver(); dies(n) }, code: "Exit Code: 7", ended: 6 * time.Second},
		{name: "second wait fails", script: early(func(s *script) { s.waitAgain = errors.New("gone") }), code: "Exit Code: 7", ended: 5 * time.Second},
		{name: "second wait has no result", script: early(func(s *script) { s.waitUnknown = true }), code: "Exit Code: 7", ended: 5 * time.Second},
		{
			name: "nothing returns the code", code: "The exit code is unknown", ended: 5 * time.Second,
			script: early(func(s *script) { s.waitAgain, s.inspectBare = errors.New("gone"), true }),
		},
	} {
		for _, ownCgroup := range []bool{false, true} {
			t.Run(test.name+map[bool]string{true: ", own cgroup"}[ownCgroup], func(t *testing.T) {
				n, web := running(t, test.script, ownCgroup)
				leaves(n, "a", time.Second)
				if test.trouble != nil {
					test.trouble(n)
				}
				must.EqOp(t, cluster.ClientRunning, n.status("a"))
				n.run(test.ended - time.Second)
				must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
				must.StrContains(t, n.messages("a", "web"), test.code)
				if test.killed {
					must.Between(t, 10*time.Second, web.killed-web.signaled, 11*time.Second)
				} else {
					must.EqOp(t, 0, web.killed, must.Sprint(n.storyOf()))
				}
			})
		}
	}
}

// dies kills the core, starts another one, and sends it the answer of the servers.
func dies(n *node) {
	n.crash()
	n.answer()
}

// The client dies before the disk has a record of the stop, and no server repeats the stop. The next
// client must not take an early answer of Wait for the end either.
func TestEnding_stopWithoutARecord(t *testing.T) {
	n, web := running(t, early(), false)
	n.fullDisk = true
	leaves(n, "a", time.Second)
	must.EqOp(t, 0, n.disk["a"].Tasks[0].SignalAt)
	n.fullDisk = false
	n.crash()
	n.run(20 * time.Second)
	n.answer()
	n.run(time.Second)
	must.StrContains(t, n.messages("a", "web"), "Exit Code: 7", must.Sprint(n.storyOf()))
	must.EqOp(t, 0, web.killed)
}

// An operator restarts a task, and later all tasks.
func TestEnding_restartWithAnEarlyAnswer(t *testing.T) {
	n, web := running(t, early(), false)
	n.restart("a", "web", false)
	n.run(10 * time.Second)
	must.StrContains(t, n.messages("a", "web"), "Exit Code: 7")
	must.EqOp(t, 4*time.Second, web.ended-web.signaled)
	web = n.live("web")[0]
	n.restart("a", "", true)
	n.run(10 * time.Second)
	must.EqOp(t, 4*time.Second, web.ended-web.signaled)
	must.EqOp(t, 0, web.killed)
	must.Len(t, 1, n.live("web"))
}

// The leader ends, so the client stops the other tasks.
func TestEnding_leaderWithAnEarlyAnswer(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = early()
	n.scripts["leader"] = script{runs: []ending{{after: 30 * time.Second}}}
	a := allocation("a", &cluster.Task{Name: "leader", Driver: "mock", Leader: true}, &cluster.Task{Name: "web", Driver: "mock", KillTimeout: 10 * time.Second})
	a.Job.Type = cluster.JobBatch
	n.place(a)
	n.run(20 * time.Second)
	web := n.live("web")[0]
	reaches(n, "a", cluster.ClientComplete, 30*time.Second)
	must.EqOp(t, 4*time.Second, web.ended-web.signaled)
	must.EqOp(t, 0, web.killed)
	must.StrContains(t, n.messages("a", "web"), "Exit Code: 7")
}

// Stop never returns. SIGKILL comes within a second after the grace, or within six if only the driver can
// kill the task. The end does not wait for the limit of the call. The exit code is known if the driver
// still has the task.
func TestEnding_stopHangs(t *testing.T) {
	for ownCgroup, earliest := range map[bool]time.Duration{false: 10 * time.Second, true: 15 * time.Second} {
		n, web := running(t, early(func(s *script) { s.hangsAt = "StopTask" }), ownCgroup)
		began := n.boot
		leaves(n, "a", earliest+2*time.Second)
		must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
		must.Between(t, earliest, web.killed-began, earliest+time.Second)
		must.StrContains(t, n.messages("a", "web"), "Exit Code: 137")
	}
}

// The driver destroys the task by force while Wait has answered too early. The answer is not the
// exit code.
func TestEnding_destroyedAfterAnEarlyAnswer(t *testing.T) {
	n, web := running(t, early(func(s *script) { s.ignores, s.stopLag, s.inspectRuns = true, time.Minute, true }), true)
	web.signaled = n.boot // Wait answers, although the client has not requested a stop
	leaves(n, "a", 17*time.Second)
	must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
	must.StrContains(t, n.messages("a", "web"), "The exit code is unknown")
}

// Bug: half a second after the grace the client destroyed a task that its driver was killing, so the exit
// code was lost on a busy node.
func TestEnding_driverKillsLate(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, 4 * time.Second} {
		n, web := running(t, early(func(s *script) { s.stopTakes = 10*time.Second + takes; s.killsLate = 10 * time.Second }), true)
		leaves(n, "a", 16*time.Second)
		must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
		must.StrContains(t, n.messages("a", "web"), "Exit Code: 7")
		must.EqOp(t, 0, web.killed)
	}
}

// Inspect fails, or returns that the task runs, for ever. The stop ends after the grace and the
// slack, the task gets its whole grace, and the client does not restart the driver.
func TestEnding_inspectIsUseless(t *testing.T) {
	for name, change := range map[string]func(*script){
		"runs for ever": func(s *script) { s.inspectRuns = true },
		"hangs":         func(s *script) { s.hangsAt = "InspectTask" },
	} {
		t.Run(name, func(t *testing.T) {
			n, web := running(t, early(func(s *script) { s.ignores = true }, change), false)
			leaves(n, "a", 10*time.Second+client.StopSlack+2*time.Second)
			must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
			must.Between(t, 10*time.Second, web.killed-web.signaled, 11*time.Second)
			must.StrContains(t, n.messages("a", "web"), "The exit code is unknown")
			must.Less(t, 60, n.calls["InspectTask"])
			must.StrNotContains(t, n.storyOf(), "the driver dies")
		})
	}
	t.Run("fails", func(t *testing.T) {
		failed := &driver.Error{Class: driver.Fatal, Call: "InspectTask", Err: errors.New("no socket")}
		n, web := running(t, early(func(s *script) { s.inspectError = failed }), false)
		leaves(n, "a", 3*time.Minute)
		must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
		must.EqOp(t, 0, web.killed)
		must.StrContains(t, n.messages("a", "web"), "The driver did not report how the task ended")
	})
}

// Bug: a task that had ended ran for ever for the client, because its driver never answered WaitTask.
func TestEnding_waitNeverAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		change  script
		trouble func(*node)
		code    string
	}{
		"exit":                      {code: "Exit Code: 3"},
		"exit without a code":       {change: script{inspectBare: true}, code: "The exit code is unknown"},
		"exit, and the client dies": {trouble: dies, code: "Exit Code: 3"},
		"unknown to the driver":     {change: script{inspectBare: true, inspectError: &driver.Error{Class: driver.NotFound, Call: "InspectTask", Err: errors.New("unknown task")}}, code: "The exit code is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			test.change.hangsAt = "WaitTask"
			n, web := running(t, test.change, false)
			n.exit(web, 3, 0)
			if test.trouble != nil {
				test.trouble(n)
			}
			n.run(client.InspectInterval + client.StopSlack + time.Second)
			must.StrContains(t, n.messages("a", "web"), test.code)
			must.EqOp(t, 1, len(n.live("web")), must.Sprint(n.storyOf()))
			must.LessEq(t, 3, n.calls["InspectTask"])
		})
	}
}

// A running task costs one call of Inspect in each interval.
func TestEnding_inspectsFromTimeToTime(t *testing.T) {
	n, _ := running(t, script{}, false)
	n.run(time.Hour)
	must.Between(t, 8, n.calls["InspectTask"], 12)
}

// The end of a task without a stop needs one call of Wait. The end of a task that obeys its signal
// needs two more calls.
func TestEnding_calls(t *testing.T) {
	n, web := running(t, script{stopWaits: true, stopTakes: time.Second}, false)
	n.exit(web, 1, 0)
	n.run(30 * time.Second)
	must.EqOp(t, 0, n.calls["InspectTask"])
	must.EqOp(t, 2, n.calls["WaitTask"]) // of two starts
	ends(n, "a", 3*time.Second)
	must.EqOp(t, 1, n.calls["InspectTask"])
	must.EqOp(t, 3, n.calls["WaitTask"])
}
