package main

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// An allocation shows its tasks, what they wait for, and their events, newest first.
func TestAllocStatus_tasks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	a := wire.NewAllocation(&cluster.Allocation{ID: "a1", TaskStates: &cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: "proxy", State: cluster.TaskDead, Failed: true, StartedAt: at, FinishedAt: at.Add(time.Second)},
		{Name: "server", State: cluster.TaskRunning, Restarts: 2, StartedAt: at,
			Waiting: &cluster.TaskWait{For: cluster.WaitProcess, Detail: "pid 17 in state D"},
			Events:  []cluster.TaskEvent{{Type: "Received", Time: at}, {Type: "Started", Time: at.Add(time.Second), Message: "Task started by client"}}},
	}}})
	var out bytes.Buffer
	c := allocStatusCommand{}
	c.out = &out
	c.tasks(a)
	for _, line := range []string{
		`(?m)^proxy +dead +true +0 +2026-11-20T12:00:00\S* +2026-11-20T12:00:01\S* +-$`,
		`(?m)^server +running +false +2 +2026-11-20T12:00:00\S* +- +process: pid 17 in state D$`,
		`(?m)^Events of task "server"\nTime +Type +Message\n2026-11-20T12:00:01\S* +Started +Task started by client\n2026-11-20T12:00:00\S* +Received +-$`,
	} {
		must.RegexMatch(t, regexp.MustCompile(line), out.String())
	}
	must.StrNotContains(t, out.String(), `Events of task "proxy"`)
}

// A reason to stop names what each task waits for.
func TestNodeExplain_waits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := wire.DrainAlloc{Detail: "stopping, may take 20s", Waiting: map[string]*wire.TaskWait{
		"server": {For: "grace", Until: wire.NewTime(now.Add(10 * time.Second))},
		"driver": {For: "driver", Detail: "raw_exec does not answer"},
	}}
	must.RegexMatch(t, regexp.MustCompile(`^stopping, may take 20s; task "driver" waits for driver: raw_exec does not answer; task "server" waits for grace until \S+ \(\S+ left\)$`), detailCell(a))
	must.Eq(t, "grace until "+clock(wire.NewTime(now)), waitText(&wire.TaskWait{For: "grace", Until: wire.NewTime(now)}, now), must.Sprint("the grace is over"))
}
