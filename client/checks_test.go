//race:skip one goroutine
package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// httpCheck is a check that runs each second.
func httpCheck(name string, change ...func(*cluster.ServiceCheck)) cluster.ServiceCheck {
	c := cluster.ServiceCheck{Name: name, Type: cluster.CheckHTTP, Path: "/", Interval: time.Second, Timeout: time.Second}
	for _, f := range change {
		f(&c)
	}
	return c
}

// checked returns a node with an allocation that has the checks. Its task needs six seconds to be healthy.
func checked(t *testing.T, all ...cluster.ServiceCheck) (*node, *verdicts) {
	n, v := looping(t, 100*time.Hour)
	n.allocs[0].Job.TaskGroups[0].Services = []cluster.Service{{Name: "web", PortLabel: "80", Checks: all}}
	return n, v
}

func failing(output string) checks.Result { return checks.Result{Output: output} }

// An allocation is healthy when its checks have passed for the minimum healthy time.
func TestChecks_decide(t *testing.T) {
	n, v := checked(t, httpCheck("up"), httpCheck("other"))
	n.checks.results["up"] = failing("connection refused")
	n.run(4 * time.Second)
	delete(n.checks.results, "up")
	n.run(time.Minute)
	must.Eq(t, []string{"10s true"}, v.changes)
}

// A check that fails makes the allocation unhealthy at once, with an event that contains its output. It becomes healthy
// again after the longer minimum time.
func TestChecks_fail(t *testing.T) {
	n, v := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) { c.FailuresBeforeCritical = 3 }))
	n.run(20 * time.Second)
	n.checks.results["up"] = failing("HTTP 503: no database")
	n.run(10 * time.Second)
	must.Eq(t, []string{"6s true", "22s false"}, v.changes)
	events := n.taskState("a", "web").Events
	must.EqOp(t, "Alloc Unhealthy", events[len(events)-1].Type)
	must.EqOp(t, `The check "up" of service "web" fails: HTTP 503: no database`, events[len(events)-1].Message)
	must.SliceLen(t, 1, n.live("web"), must.Sprint("a check without check_restart restarts nothing"))
	delete(n.checks.results, "up")
	n.run(time.Minute)
	must.Eq(t, []string{"6s true", "22s false", "42s true"}, v.changes)
}

// The event at the healthy deadline names the check that has not passed.
func TestChecks_atTheDeadline(t *testing.T) {
	n, v := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) { c.SuccessBeforePassing = 10_000 }))
	n.run(6 * time.Minute)
	must.Eq(t, []string{"300s false"}, []string{strings.Replace(v.changes[0], "5m0s", "300s", 1)})
	events := n.taskState("a", "web").Events
	must.EqOp(t, `The check "up" of service "web" has not passed by the healthy deadline. Its last result: good`, events[len(events)-1].Message)
}

// Checks with on_update "ignore" decide nothing, and no check decides with health_check "task_states".
func TestChecks_thatDoNotDecide(t *testing.T) {
	for name, change := range map[string]func(*cluster.TaskGroup){
		"ignore": func(g *cluster.TaskGroup) { g.Services[0].Checks[0].OnUpdate = cluster.CheckIgnored },
		"task_states": func(g *cluster.TaskGroup) {
			update := cluster.DefaultUpdateStrategy()
			update.MinHealthyTime, update.HealthCheck = 0, cluster.HealthTaskStates
			g.Update, g.Migrate.HealthCheck = &update, cluster.HealthTaskStates
		},
	} {
		n, v := checked(t, httpCheck("up"))
		change(n.allocs[0].Job.TaskGroups[0])
		n.checks.results["up"] = failing("no")
		n.run(time.Minute)
		must.Eq(t, []string{"6s true"}, v.changes, must.Sprint(name))
		must.Greater(t, 50, n.checks.count("up"), must.Sprint(name))
	}
}

// Batch jobs have no checks.
func TestChecks_ofBatch(t *testing.T) {
	n, _ := checked(t, httpCheck("up"))
	n.allocs[0].Job.Type = cluster.JobBatch
	n.run(time.Minute)
	must.EqOp(t, 0, n.checks.count("up"))
}

// The first run begins with the task, and the others an interval after the last. None begins while the task is between
// starts or the allocation stops, and a run that hangs is ended then.
func TestChecks_runWhileTheTaskRuns(t *testing.T) {
	n, _ := checked(t, httpCheck("up"))
	n.allocs[0].Job.TaskGroups[0].RestartPolicy.Delay = 30 * time.Second
	n.run(time.Second)
	began := n.checks.runs[0].began
	n.run(8*time.Second + 500*time.Millisecond)
	must.EqOp(t, 10, n.checks.count("up"))
	must.EqOp(t, began+9*time.Second, n.checks.runs[9].began)
	n.checks.hangs["up"] = true
	n.run(time.Second)
	n.exit(n.live("web")[0], 1, 0)
	n.run(10 * time.Second)
	must.EqOp(t, 11, n.checks.count("up"))
	must.Positive(t, n.checks.runs[10].end)
	delete(n.checks.hangs, "up")
	n.run(30 * time.Second)
	must.Greater(t, 15, n.checks.count("up"))
	n.stop("a")
	n.run(20 * time.Millisecond)
	stopped := n.checks.count("up")
	n.run(time.Minute)
	must.EqOp(t, stopped, n.checks.count("up"))
}

// The next client keeps the verdict until the checks have results, and begins them within their interval. It saves no
// result.
func TestChecks_restartOfTheClient(t *testing.T) {
	n, v := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) { c.Interval = 10 * time.Second }))
	n.run(20 * time.Second)
	for range 20 {
		count := n.checks.count("up")
		restarts(n, 10*time.Second)
		must.Greater(t, count, n.checks.count("up"))
		n.killDriver()
		n.run(10 * time.Second)
	}
	must.Eq(t, []string{"6s true"}, v.changes)
	saved, reports := n.disk["a"], len(n.reports)
	n.run(time.Hour)
	must.True(t, saved == n.disk["a"], must.Sprint("no result is saved"))
	must.SliceLen(t, reports, n.reports)
	n.checks.results["up"] = failing("no")
	restarts(n, 12*time.Second)
	must.False(t, *n.servers["a"].Healthy)
}

// A script runs in the present start of its task, by the process of the driver that has the task.
func TestChecks_scripts(t *testing.T) {
	n, v := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) { c.Type, c.Command = cluster.CheckScript, "true" }))
	n.run(5 * time.Second)
	must.EqOp(t, n.live("web")[0].id, n.checks.runs[0].task.ID)
	first := n.checks.runs[0].task.Generation
	n.killDriver()
	n.run(20 * time.Second)
	must.Greater(t, first, n.checks.runs[len(n.checks.runs)-1].task.Generation)
	must.SliceLen(t, 1, v.changes)
}

// A check that fails restarts its task by the restart policy, with the grace after each start.
func TestChecks_restart(t *testing.T) {
	n, v := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) {
		c.Restart = &cluster.CheckRestart{Limit: 3, Grace: 10 * time.Second}
	}))
	g := n.allocs[0].Job.TaskGroups[0]
	g.RestartPolicy = &cluster.RestartPolicy{Attempts: 1, Interval: time.Hour, Delay: 5 * time.Second, Mode: cluster.RestartFail}
	n.checks.results["up"] = failing("no")
	n.run(9 * time.Second)
	must.MapLen(t, 1, n.tasks, must.Sprint("in its grace"))
	n.run(4 * time.Second)
	must.SliceEmpty(t, n.live("web"), must.Sprint("three failures after the grace"))
	n.run(5 * time.Second)
	must.SliceLen(t, 1, n.live("web"), must.Sprint("after the delay of the policy"))
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	var messages []string
	for _, e := range n.taskState("a", "web").Events {
		messages = append(messages, e.Type+": "+e.Message)
	}
	must.SliceContains(t, messages, `Restart Signaled: The check "up" of service "web" has failed 3 times in a row: no`)
	must.SliceContains(t, messages, "Restarting: Task restarting in 5s")
	n.run(time.Minute)
	must.EqOp(t, cluster.ClientFailed, n.status("a"), must.Sprint("the policy allows one restart in an hour"))
	must.SliceLen(t, 1, v.changes)
}

// The policy counts the restart by a check, and not the next one by an operator. Bug: no test had both for one task.
func TestChecks_restartBeforeAnOperator(t *testing.T) {
	for _, all := range []bool{false, true} {
		n, _ := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) { c.Restart = &cluster.CheckRestart{Limit: 1} }))
		g := n.allocs[0].Job.TaskGroups[0]
		g.RestartPolicy = &cluster.RestartPolicy{Attempts: 1, Interval: time.Hour, Delay: 5 * time.Second, Mode: cluster.RestartFail}
		n.run(10 * time.Second)
		n.checks.results["up"] = failing("no")
		n.run(3 * time.Second)
		delete(n.checks.results, "up")
		n.run(10 * time.Second)
		must.EqOp(t, 1, n.disk["a"].Tasks[0].Restarts)
		process := n.live("web")[0]
		answer := n.restart("a", "", all)
		n.run(time.Second)
		must.NoError(t, answer.err)
		must.SliceLen(t, 1, n.live("web"), must.Sprint(n.eventsOf("a", "web")))
		must.NotEqOp(t, process.id, n.live("web")[0].id)
		must.EqOp(t, 1, n.disk["a"].Tasks[0].Restarts, must.Sprint("the policy counts the restart by the check alone"))
		must.EqOp(t, 2, n.taskState("a", "web").Restarts)
		must.EqOp(t, cluster.ClientRunning, n.status("a"))
	}
}

// A check without a task restarts all main tasks.
func TestChecks_restartAllMainTasks(t *testing.T) {
	n := newNode(t)
	a := allocation("a", mainTask("one"), mainTask("two"), hooked("side", cluster.HookPrestart, true))
	a.Job.TaskGroups[0].Services = []cluster.Service{{Name: "web", PortLabel: "80", Checks: []cluster.ServiceCheck{httpCheck("up", func(c *cluster.ServiceCheck) {
		c.Restart = &cluster.CheckRestart{Limit: 2}
	})}}}
	n.checks.results["up"] = failing("no")
	n.place(a)
	n.run(5 * time.Second)
	restarts := map[string]uint64{}
	for _, name := range []string{"one", "two", "side"} {
		restarts[name] = n.taskState("a", name).Restarts
	}
	must.Eq(t, map[string]uint64{"one": 1, "two": 1, "side": 0}, restarts)
}

// Before the shutdown delay of a restart the servers have the report that the allocation is not healthy. If they do not take
// it, the restart waits for the delay at most, and not at all without one.
func TestRestart_announces(t *testing.T) {
	for name, c := range map[string]struct {
		delay  time.Duration
		silent bool
		byTest func(*node)
		signal time.Duration // after the restart
	}{
		"operator":                 {delay: 4 * time.Second, signal: 4 * time.Second},
		"servers that are away":    {delay: 4 * time.Second, silent: true, signal: 8 * time.Second},
		"away and without a delay": {silent: true},
		"check": {delay: 4 * time.Second, signal: 4 * time.Second, byTest: func(n *node) {
			n.checks.results["up"] = failing("no")
			n.run(time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n, v := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) { c.Restart = &cluster.CheckRestart{Limit: 1} }))
			n.allocs[0].Job.TaskGroups[0].Tasks[0].ShutdownDelay = c.delay
			n.run(20 * time.Second)
			process := n.live("web")[0]
			must.True(t, *n.servers["a"].Healthy)
			n.silent = c.silent
			before := n.boot
			if c.byTest != nil {
				c.byTest(n)
			} else {
				must.NoError(t, n.restart("a", "web", false).err)
				n.run(time.Second)
			}
			must.EqOp(t, c.silent, *n.servers["a"].Healthy)
			n.run(time.Minute)
			must.Between(t, c.signal, process.signaled-before, c.signal+time.Second)
			must.StrHasSuffix(t, "false", v.changes[1])
			must.SliceLen(t, 1, n.live("web"))
		})
	}
}

// A restart that waits for the servers survives the client, and a stop does not wait.
func TestRestart_announcesAgain(t *testing.T) {
	n, _ := checked(t, httpCheck("up"))
	n.allocs[0].Job.TaskGroups[0].Tasks[0].ShutdownDelay = 10 * time.Second
	n.run(20 * time.Second)
	process := n.live("web")[0]
	n.silent = true
	n.restart("a", "web", false)
	n.run(5 * time.Second)
	restarts(n, 8*time.Second)
	must.EqOp(t, 0, process.signaled)
	n.stop("a")
	stopped := n.boot
	n.run(time.Minute)
	must.Between(t, 10*time.Second, process.signaled-stopped, 11*time.Second)
}

// Bug: an allocation whose longest run was over stayed in the catalogue through its shutdown delay.
func TestChecks_longestRun(t *testing.T) {
	n, _ := checked(t, httpCheck("up"))
	n.allocs[0].Job.TaskGroups[0].MaxRunDuration = 30 * time.Second
	n.allocs[0].Job.TaskGroups[0].Tasks[0].ShutdownDelay = 10 * time.Second
	n.run(20 * time.Second)
	process := n.live("web")[0]
	must.True(t, *n.servers["a"].Healthy)
	n.run(12 * time.Second)
	must.False(t, *n.servers["a"].Healthy)
	must.EqOp(t, 0, process.signaled, must.Sprint("the shutdown delay has not ended"))
	n.run(time.Minute)
	must.Positive(t, process.signaled)
}

// A version of the job with other checks reaches the running allocation. A check that does not change continues.
func TestChecks_newVersion(t *testing.T) {
	n, v := checked(t, httpCheck("up", func(c *cluster.ServiceCheck) { c.Interval = time.Hour }))
	n.run(20 * time.Second)
	newer := n.allocs[0].Copy()
	newer.Job = newer.Job.Copy()
	newer.Job.Version++
	newer.Job.TaskGroups[0].Services[0].Checks = append(newer.Job.TaskGroups[0].Services[0].Checks, httpCheck("more"))
	n.index++
	newer.AllocModifyIndex = n.index
	n.allocs[0] = newer
	n.answer()
	n.run(10 * time.Second)
	must.EqOp(t, 1, n.checks.count("up"))
	must.Between(t, 9, n.checks.count("more"), 11)
	must.Eq(t, []string{"6s true"}, v.changes)
	must.EqOp(t, newer.Job.Version, n.disk["a"].Alloc.Job.Version)
	restarts(n, 10*time.Second)
	must.Greater(t, 15, n.checks.count("more"))
}

// Operators see the states of all checks.
func TestOperator_checks(t *testing.T) {
	n, _ := checked(t, httpCheck("up"), httpCheck("down"))
	n.checks.results["down"] = checks.Result{Code: 503, Output: "HTTP 503"}
	n.run(3 * time.Second)
	var reports []checks.Report
	n.core.Operator().Checks("a", func(_ *cluster.Allocation, all []checks.Report, err error) {
		must.NoError(t, err)
		reports = all
	})
	n.core.Operator().Checks("b", func(_ *cluster.Allocation, _ []checks.Report, err error) {
		must.ErrorIs(t, err, client.ErrUnknownAlloc)
	})
	n.run(time.Millisecond)
	must.SliceLen(t, 2, reports)
	must.EqOp(t, checks.Success, reports[0].Status)
	must.EqOp(t, checks.Failure, reports[1].Status)
	must.EqOp(t, 503, reports[1].Code)
	must.False(t, reports[1].At.IsZero())
}
