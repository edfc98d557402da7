package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// messages returns the messages of a task's events.
func (n *node) messages(id cluster.AllocID, name string) string {
	var texts []string
	for _, e := range n.servers[id].TaskStates.State(name).Events {
		texts = append(texts, e.Message)
	}
	return strings.Join(texts, "\n")
}

// H2: a driver is unhealthy while its task stops. The task gets its signal and its whole grace.
func TestCore_unhealthyDriverStopsTasks(t *testing.T) {
	n := newRunning(t, script{stopTakes: 3 * time.Second}, time.Minute)
	process := n.live("web")[0]
	n.core.Fingerprint("mock", n.driver.generation, driver.Fingerprint{Health: driver.Unhealthy, Description: "no coffee"})
	n.run(time.Minute)
	must.EqOp(t, "no coffee", health(n).HealthDescription)
	must.True(t, process.alive)
	ends(n, "a", time.Minute)
	must.EqOp(t, 3*time.Second, process.ended-process.signaled)
}

func health(n *node) *cluster.DriverInfo { return n.published[len(n.published)-1].Drivers["mock"] }

// The health of a driver and of devices has the reason for which their process ended. Regression: an
// operator had to search the log of the plugin.
func TestCore_pluginDownReportsWhy(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	n.run(time.Minute)
	n.driver.launchError, n.devices.process.launchError = errors.New("no"), errors.New("no")
	n.killDriver()
	n.killDevicePlugin(n.devices.process.generation)
	n.run(time.Second)
	must.EqOp(t, "the driver's process has died: panic: a fault of the script", health(n).HealthDescription)
	must.Eq(t, []string{"acme/toy/t1/d1 the process of the device plugin has died: panic: a fault of the script"}, n.reportedDevices())
}

// Events of a process of a plugin that has ended come late: while no process of the plugin runs, or while
// the next one does. They change nothing. Bug: a late report of a device plugin made its devices healthy
// while no process of it ran.
func TestCore_eventsOfADeadPlugin(t *testing.T) {
	for _, test := range []struct {
		name string
		post func(n *node, drivers, devices client.Generation)
	}{
		{"fingerprint", func(n *node, drivers, _ client.Generation) {
			n.core.Fingerprint("mock", drivers, driver.Fingerprint{Health: driver.Healthy, Description: "late"})
		}},
		{"devices", func(n *node, _, devices client.Generation) {
			n.core.Devices("toys", devices, client.DeviceReport{Groups: []*cluster.DeviceGroup{{Kind: toy, Devices: []cluster.Device{{ID: "late", Healthy: true}}}}})
		}},
		{"no devices", func(n *node, _, devices client.Generation) {
			n.core.Devices("toys", devices, client.DeviceReport{Err: errors.New("late")})
		}},
		{"end of a driver", func(n *node, drivers, _ client.Generation) {
			n.core.PluginDown(client.Plugin{Type: client.DriverPlugin, Name: "mock"}, drivers, "late")
		}},
		{"end of a device plugin", func(n *node, _, devices client.Generation) {
			n.core.PluginDown(client.Plugin{Type: client.DevicePlugin, Name: "toys"}, devices, "late")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t)
			n.install("d1")
			n.run(time.Minute)
			drivers, devices := n.driver.generation, n.devices.process.generation
			n.driver.launchError, n.devices.process.launchError = errors.New("no"), errors.New("no")
			n.killDriver()
			n.killDevicePlugin(devices)
			for range 2 {
				n.run(5 * time.Minute)
				published := len(n.published)
				test.post(n, drivers, devices)
				n.run(time.Second)
				must.SliceLen(t, published, n.published, must.Sprint(n.published[len(n.published)-1]))
				n.driver.launchError, n.devices.process.launchError = nil, nil
			}
			n.run(10 * time.Minute)
			must.True(t, health(n).Healthy)
			must.Eq(t, []string{"acme/toy/t1/d1"}, n.reportedDevices())
		})
	}
}

// H9: the driver does not answer a call, in one process of the driver or in all. The wait of the
// task names the driver or the grace, and the stop ends.
func TestCore_driverHangsAtEachCall(t *testing.T) {
	for _, test := range []struct {
		call  string
		waits string        // what an operator sees while the task stops
		at    time.Duration // after the stop
		ended time.Duration // the stop has ended
		kill  bool          // the task gets no signal, because all processes of the driver hang
	}{
		{"RecoverTask", "the driver mock", 10 * time.Second, 2 * time.Minute, true},
		{"WaitTask", "the driver mock has not reported how the task ended", 10 * time.Second, time.Minute, false},
		{"InspectTask", "", 0, time.Minute, false},
		{"StopTask", "", time.Second, 10 * time.Second, true},
		{"DestroyTask", "the remains of the task could not be removed, and the client retries: DestroyTask: no answer", 40 * time.Second, 10 * time.Minute, false},
	} {
		for _, once := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s once=%t", test.call, once), func(t *testing.T) {
				n := newRunning(t, script{hangsAt: test.call, hangsOnce: once}, time.Minute)
				if test.call == "RecoverTask" || test.call == "InspectTask" {
					sc := n.scripts["web"]
					n.killDriver()
					n.scripts["web"] = sc // the next process hangs
					n.run(10 * time.Second)
				}
				process := n.live("web")[0]
				leaves(n, "a", test.at)
				if test.at > 0 {
					wait := n.servers["a"].TaskStates.State("web").Waiting
					must.NotNil(t, wait, must.Sprint(n.messages("a", "web")))
					must.StrContains(t, wait.Detail, test.waits)
				}
				n.run(test.ended - test.at)
				must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.servers["a"].TaskStates.State("web").Waiting, n.storyOf()))
				must.Len(t, 0, n.live(""))
				must.EqOp(t, test.kill, process.killed != 0)
				if test.call == "StopTask" {
					must.StrContains(t, n.messages("a", "web"), "Exit Code: 137")
				}
			})
		}
	}
}

// H5: the driver never answers a start. The client restarts the driver each time, and the
// allocation fails after its restart attempts, with the reason.
func TestCore_startNeverAnswers(t *testing.T) {
	n := newRunning(t, script{hangsAt: "StartTask"}, time.Hour)
	must.EqOp(t, cluster.ClientFailed, n.status("a"))
	must.EqOp(t, 3, strings.Count(n.storyOf(), "the driver dies"))
	must.StrContains(t, n.messages("a", "web"), "The driver did not start the task in time, and the client restarts the driver")
	must.Len(t, 0, n.live(""))
}

// H9: the driver keeps its tasks in its own groups, and cannot destroy a task. The client restarts
// the driver, and the next process destroys the task.
func TestCore_killHangs(t *testing.T) {
	n := newNode(t)
	n.ownCgroup = true
	n.startCore()
	n.scripts["web"] = script{ignores: true, stopLies: true, hangsAt: "DestroyTask", hangsOnce: true}
	n.place(allocation("a", mainTask("web")))
	n.run(time.Minute)
	leaves(n, "a", time.Minute)
	must.StrContains(t, n.servers["a"].TaskStates.State("web").Waiting.Detail, "the task could not be killed, and the client retries: DestroyTask: no answer")
	n.run(5 * time.Minute)
	must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.servers["a"].TaskStates.State("web").Waiting))
	must.Len(t, 0, n.live(""))
}

// H10: the driver states that it has stopped the task, but the task still runs. The client kills it
// at the end of the grace.
func TestCore_stopLies(t *testing.T) {
	n := newRunning(t, script{stopLies: true}, time.Minute)
	process, began := n.live("web")[0], n.boot
	leaves(n, "a", 4900*time.Millisecond)
	must.True(t, process.alive)
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	n.run(time.Minute)
	must.Between(t, 5*time.Second, process.killed-began, 6*time.Second)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
	must.StrContains(t, n.messages("a", "web"), "Exit Code: 137, Signal: 9")
}

// H6: the driver cannot take a task over while the task must stop. The client destroys the task.
func TestCore_recoverFailsDuringAStop(t *testing.T) {
	n := newRunning(t, script{ignores: true, recoverErr: errors.New("failed to decode driver config: EOF")}, time.Minute)
	leaves(n, "a", time.Second)
	n.killDriver()
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.StrContains(t, n.messages("a", "web"), "The driver could not take the task over: failed to decode driver config: EOF")
	must.Len(t, 0, n.live(""))
}

// R3: the client and its driver are killed. The next driver takes the task over.
func TestCore_restartWithoutTheDriver(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	process := n.live("web")[0]
	n.killDriver()
	restarts(n, time.Minute)
	must.EqOp(t, 1, n.driver.launches)
	must.True(t, process.alive)
	must.EqOp(t, 1, len(n.tasks))
	leaves(n, "a", time.Minute)
	must.Positive(t, process.signaled)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

// R4: the client is killed while its driver starts a task. The driver could still start this copy
// beside the next one, so the next client restarts the driver first.
func TestCore_killedDuringAStart(t *testing.T) {
	n := newNode(t)
	n.scripts["web"], n.dyingTakes = script{startTakes: 10 * time.Second}, 3*time.Second
	n.place(allocation("a", mainTask("web")))
	n.run(time.Second)
	n.scripts["web"] = script{}
	restarts(n, time.Minute)
	must.StrContains(t, n.storyOf(), "the driver dies")
	must.EqOp(t, 1, len(n.tasks))
	must.StrContains(t, n.messages("a", "web"), "does not know whether the task was started")
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
}

// R7: the servers drain the node while its client is down. The next client stops the task, with its
// whole grace.
func TestCore_drainedWhileAway(t *testing.T) {
	n := newRunning(t, script{stopTakes: 4 * time.Second}, time.Minute)
	process := n.live("web")[0]
	n.stop("a")         // the core has no time to see it
	n.boot += time.Hour // no client runs
	restarts(n, time.Minute)
	must.EqOp(t, 4*time.Second, process.ended-process.signaled)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

// A plugin that prints garbage, does no handshake, or uses another version does not start. The
// client publishes the reason, restarts the plugin with backoff, and tasks wait for it.
func TestCore_driverDoesNotStart(t *testing.T) {
	n := newNode(t)
	n.driver.down = true
	n.driver.launchError = errors.New("the plugin did not start: Unrecognized remote plugin message: hello")
	n.place(allocation("a", mainTask("web")))
	n.run(time.Hour)
	must.Between(t, 30, n.driver.launches, 40)
	must.EqOp(t, "the driver did not start: "+n.driver.launchError.Error(), health(n).HealthDescription)
	must.False(t, health(n).Healthy)
	must.False(t, health(n).Detected)
	must.SliceLen(t, 1, n.published)
	must.EqOp(t, "the driver mock is not running", n.servers["a"].TaskStates.State("web").Waiting.Detail)
	n.driver.launchError = nil
	reaches(n, "a", cluster.ClientRunning, 3*time.Minute)
	must.True(t, health(n).Healthy)
}

// A driver is healthy, but each start of a task fails, with a recoverable or a final error. The
// allocation fails with the driver's message.
func TestCore_healthyAndUseless(t *testing.T) {
	for class, starts := range map[driver.Class]int{driver.Recoverable: 3, driver.Fatal: 1} {
		t.Run(class.String(), func(t *testing.T) {
			n := newNode(t)
			var errs []error
			for range 10 {
				errs = append(errs, &driver.Error{Class: class, Call: "StartTask", Err: errors.New("cannot create a cgroup")})
			}
			n.scripts["web"] = script{startErrors: errs}
			n.place(allocation("a", mainTask("web")))
			reaches(n, "a", cluster.ClientFailed, time.Hour)
			must.EqOp(t, starts, n.ids)
			must.StrContains(t, n.messages("a", "web"), "failed to start task: StartTask: cannot create a cgroup")
			must.True(t, health(n).Healthy)
			must.Len(t, 0, n.live(""))
		})
	}
}

// A task exits at once a thousand times. The number of its events is limited, and its last copy
// stops normally.
func TestCore_exitsAtOnce(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: time.Millisecond, code: 1}}}
	a := allocation("a", mainTask("web"))
	a.Job.TaskGroups[0].RestartPolicy = &cluster.RestartPolicy{Attempts: 1_000_000, Interval: 24 * time.Hour, Delay: time.Second, Mode: cluster.RestartFail}
	n.place(a)
	n.run(1100 * time.Second)
	state := n.servers["a"].TaskStates.State("web")
	must.Between(t, 1000, int(state.Restarts), 1100)
	must.EqOp(t, len(n.tasks), strings.Count(n.storyOf(), "exits with 1"))
	must.LessEq(t, cluster.MaxTaskEvents, len(state.Events))
	must.LessEq(t, cluster.MaxTaskEvents, len(n.disk["a"].Tasks[0].State.Events))
	n.scripts["web"] = script{}
	n.run(time.Minute)
	ends(n, "a", time.Minute)
	must.Len(t, 0, n.live(""))
}

// The servers do not answer for an hour. Tasks run, restart and end, and the client reports all of
// it afterwards.
func TestCore_anHourWithoutServers(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: 30 * time.Minute, code: 1}, {}}}
	n.scripts["work"] = script{runs: []ending{{after: 40 * time.Minute}}}
	work := allocation("b", mainTask("work"))
	work.Job.Type = cluster.JobBatch
	n.place(allocation("a", mainTask("web")))
	n.place(work)
	n.run(time.Minute)
	n.silent = true
	n.run(time.Hour)
	n.silent = false
	reaches(n, "a", cluster.ClientRunning, time.Minute)
	must.EqOp(t, uint64(1), n.servers["a"].TaskStates.State("web").Restarts)
	must.EqOp(t, cluster.ClientComplete, n.status("b"))
}

// A Wait call fails, and the answer comes when the next process of the driver runs. Bug: the core
// requested that process for the state of a task that it had not taken over, took the answer for the
// end of the task, and killed it.
func TestDrivers_waitFailsLate(t *testing.T) {
	n := newRunning(t, script{waitLate: errors.New("the stream is broken")}, time.Minute)
	first := n.live("web")
	must.SliceLen(t, 1, first)
	n.killDriver()
	n.run(time.Minute)
	must.Eq(t, first, n.live("web"))
}

// The driver's process ends while it starts a task. The client retries, and the restart policy, which
// permits no restart, does not apply. Bug: the allocation failed with "Exceeded allowed attempts 0". A task
// whose driver ends at each start still fails.
func TestDrivers_endDuringStart(t *testing.T) {
	for _, once := range []bool{true, false} {
		t.Run(fmt.Sprintf("once=%t", once), func(t *testing.T) {
			n := newNode(t)
			n.scripts["web"] = script{hangsAt: "StartTask", hangsOnce: once}
			a := allocation("a", mainTask("web"))
			a.Job.TaskGroups[0].RestartPolicy = &cluster.RestartPolicy{Interval: time.Hour, Delay: time.Second, Mode: cluster.RestartFail}
			n.place(a)
			n.run(5 * time.Second)
			n.killDriver()
			if once {
				reaches(n, "a", cluster.ClientRunning, time.Minute)
				must.Zero(t, n.servers["a"].TaskStates.State("web").Restarts)
				must.StrContains(t, n.messages("a", "web"), "does not count as a restart")
				return
			}
			for range 3 {
				n.run(time.Minute)
				must.EqOp(t, cluster.ClientPending, n.status("a"))
				n.killDriver()
			}
			reaches(n, "a", cluster.ClientFailed, time.Minute)
		})
	}
}
