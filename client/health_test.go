//race:skip one goroutine
package client_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// verdicts is a shell that records when reports contain another verdict.
type verdicts struct {
	*shell
	last *bool
	// changes are texts such as "8s false", counted from the first time of the test.
	changes []string
}

func (v *verdicts) Report(reports []cluster.AllocReport, reply func(bool)) {
	for _, r := range reports {
		if r.Healthy != nil && (v.last == nil || *v.last != *r.Healthy) {
			v.last = r.Healthy
			v.changes = append(v.changes, fmt.Sprintf("%s %t", (v.node.boot-uptime).Round(time.Second), *r.Healthy))
		}
	}
	v.shell.Report(reports, reply)
}

// looping returns a node with an allocation whose task exits with 1 after a time, again and again. Its
// minimum healthy time is six seconds, and it starts again after a second.
func looping(t *testing.T, runs time.Duration) (*node, *verdicts) {
	n, v := newNode(t), &verdicts{}
	n.wrap = func(s *shell) client.Shell {
		v.shell = s
		return v
	}
	n.startCore()
	n.scripts["web"] = script{runs: []ending{{after: runs, code: 1}}}
	a := allocation("a", mainTask("web"))
	g := a.Job.TaskGroups[0]
	g.Migrate = cluster.DefaultMigrateStrategy()
	g.Migrate.MinHealthyTime = 6 * time.Second
	g.RestartPolicy = &cluster.RestartPolicy{Attempts: 1_000_000, Interval: 24 * time.Hour, Delay: time.Second, Mode: cluster.RestartDelay}
	n.place(a)
	return n, v
}

// Bug: an allocation whose task crashed again and again stayed healthy, because the first verdict was
// the last one. A drain then moved the only good allocation of the group.
func TestHealth_crashLoop(t *testing.T) {
	n, v := looping(t, 8*time.Second)
	n.run(time.Hour)
	must.Eq(t, []string{"6s true", "8s false"}, v.changes)
	must.False(t, *n.servers["a"].Healthy)
	must.Greater(t, 390, len(n.tasks), must.Sprint("the task was started again and again"))
}

// The number of verdicts in an hour grows with the logarithm of the time for which the task runs.
func TestHealth_reportsOfACrashLoop(t *testing.T) {
	for runs, most := range map[time.Duration]int{
		5 * time.Second: 1, 8 * time.Second: 2, 13 * time.Second: 4, 30 * time.Second: 6, time.Minute: 8, 2 * time.Minute: 10, 4 * time.Minute: 12,
	} {
		n, v := looping(t, runs)
		n.run(time.Hour)
		must.LessEq(t, most, len(v.changes), must.Sprintf("%s: %v", runs, v.changes))
		must.False(t, *n.servers["a"].Healthy, must.Sprint(runs))
	}
}

// A task that has recovered is healthy again after the longer minimum time.
func TestHealth_recovers(t *testing.T) {
	n, v := looping(t, 8*time.Second)
	n.scripts["web"] = script{runs: []ending{{after: 8 * time.Second, code: 1}, {}}}
	n.run(time.Minute)
	must.Eq(t, []string{"6s true", "8s false", "21s true"}, v.changes)
	n.run(5 * time.Minute) // the count falls
	n.exit(n.live("web")[0], 1, 0)
	n.run(time.Minute)
	must.SliceLen(t, 5, v.changes)
	must.EqOp(t, 1, n.disk["a"].Falses)
}

// The end of a task is reported at once, before its restart.
func TestHealth_falseAtOnce(t *testing.T) {
	n, v := looping(t, time.Hour)
	n.run(time.Minute)
	n.exit(n.live("web")[0], 1, 0)
	n.run(20 * time.Millisecond)
	must.False(t, *n.servers["a"].Healthy)
	must.SliceLen(t, 2, v.changes)
}

// A group has a minimum of zero. Bug: its allocations had a verdict at each end of their tasks.
func TestHealth_withoutAMinimum(t *testing.T) {
	n, v := looping(t, 3*time.Second)
	n.allocs[0].Job.TaskGroups[0].Migrate.MinHealthyTime = 0
	n.run(time.Hour)
	must.Between(t, 4, len(v.changes), 40, must.Sprint(v.changes))
}

// One-shot tasks must have succeeded, and sidecars must run. A failed poststop task does not count.
func TestHealth_allTasksCount(t *testing.T) {
	for name, c := range map[string]struct {
		extra   *cluster.Task
		script  script
		healthy *bool
	}{
		"prestart":            {hooked("other", cluster.HookPrestart, false), script{runs: []ending{{after: time.Second}}}, new(true)},
		"poststart":           {hooked("other", cluster.HookPoststart, false), script{runs: []ending{{after: time.Second}}}, new(true)},
		"poststart that runs": {hooked("other", cluster.HookPoststart, false), script{}, nil},
		"late poststart":      {hooked("other", cluster.HookPoststart, false), script{runs: []ending{{after: 14 * time.Second}}}, nil},
		"sidecar":             {hooked("other", cluster.HookPrestart, true), script{}, new(true)},
		"sidecar that ends":   {hooked("other", cluster.HookPoststart, true), script{runs: []ending{{after: 12 * time.Second, code: 1}}}, new(false)},
		"poststop":            {hooked("other", cluster.HookPoststop, false), script{}, new(true)},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.scripts["other"] = c.script
			n.place(allocation("a", mainTask("web"), c.extra))
			n.run(20 * time.Second)
			must.Eq(t, c.healthy, n.servers["a"].Healthy)
		})
	}
}

// The next client takes a healthy allocation over, also if it crashes at each effect and if the driver
// restarts. The verdict stays.
func TestHealth_restartOfTheClient(t *testing.T) {
	n, v := looping(t, time.Hour)
	n.run(20 * time.Second)
	for range 20 {
		restarts(n, 3*time.Second)
		n.killDriver()
		n.run(10 * time.Second)
	}
	must.Eq(t, []string{"6s true"}, v.changes)
	must.EqOp(t, 1, len(n.tasks))
}

// The count survives a restart of the client.
func TestHealth_countSurvives(t *testing.T) {
	n, v := looping(t, 8*time.Second)
	n.run(9 * time.Second)
	restarts(n, time.Minute)
	must.Eq(t, []string{"6s true", "8s false"}, v.changes)
}

// After a restart of the machine the tasks do not run, and the verdict states it. No time of the last
// boot counts.
func TestHealth_reboot(t *testing.T) {
	n, _ := looping(t, 30*time.Hour)
	n.run(20 * time.Hour)
	must.True(t, *n.servers["a"].Healthy)
	n.reboot()
	n.answer()
	n.run(100 * time.Millisecond)
	must.False(t, *n.servers["a"].Healthy)
	must.EqOp(t, 0, n.disk["a"].TrueAt)
	n.run(14 * time.Second)
	must.True(t, *n.servers["a"].Healthy)
}

// Bug: a client that took over the record of an earlier release kept its verdict, although the task did
// not run.
func TestHealth_recordOfAnEarlierRelease(t *testing.T) {
	n, _ := looping(t, 8*time.Second)
	n.run(8500 * time.Millisecond)
	text, err := json.Marshal(n.disk["a"])
	must.NoError(t, err)
	var fields map[string]any
	must.NoError(t, json.Unmarshal(text, &fields))
	delete(fields, "Falses")
	delete(fields, "TrueAt")
	fields["Healthy"] = true
	text, err = json.Marshal(fields)
	must.NoError(t, err)
	var old client.Record
	must.NoError(t, json.Unmarshal(text, &old))
	must.Eq(t, verdict.History{Healthy: new(true)}, old.History)
	n.disk["a"] = &old
	restarts(n, 100*time.Millisecond)
	must.False(t, *n.servers["a"].Healthy)
	must.EqOp(t, 1, n.disk["a"].Falses)
}

// An allocation that the servers stop gets no further verdict.
func TestHealth_stopped(t *testing.T) {
	n, v := looping(t, time.Hour)
	n.run(20 * time.Second)
	ends(n, "a", time.Minute)
	must.Eq(t, []string{"6s true"}, v.changes)
}

// An allocation that waits for its next verdict needs no step.
func TestHealth_noPolling(t *testing.T) {
	n, _ := looping(t, time.Hour)
	n.run(2 * time.Second)
	next := n.core.Step(n.time())
	must.Between(t, 4*time.Second, next-n.boot+2*time.Second, 6*time.Second+200*time.Millisecond)
	n.run(10 * time.Second)
	must.Greater(t, n.boot+client.InspectInterval-time.Minute, n.core.Step(n.time()))
}
