package alloc

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// An allocation shows its tasks, what they wait for, and their events, newest first.
func TestAllocStatus_tasks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	a := wire.NewAllocation(&cluster.Allocation{ID: "a1", TaskStates: &cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: "proxy", State: cluster.TaskDead, Failed: true, StartedAt: at, FinishedAt: at.Add(time.Second),
			Events: []cluster.TaskEvent{{Type: "Terminated", Time: at, Message: "Exit Code: 137, Signal: 9"}, {Type: "Killed", Time: at}}},
		{Name: "server", State: cluster.TaskRunning, Restarts: 2, StartedAt: at,
			Waiting: &cluster.TaskWait{For: cluster.WaitProcess, Detail: "pid 17 in state D"},
			Events:  []cluster.TaskEvent{{Type: "Received", Time: at}, {Type: "Started", Time: at.Add(time.Second), Message: "Task started by client"}}},
	}}, TaskGroup: "main", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "other"}, {Name: "main", Tasks: []*cluster.Task{{Name: "server", Driver: "raw_exec"}}}}}}, "global")
	var out bytes.Buffer
	tasks(&cli.Base{Stdio: cli.Stdio{Out: &out}}, a)
	for _, line := range []string{
		`(?m)^proxy +- +dead +true +137 +0 +2026-11-20T12:00:00\S* +2026-11-20T12:00:01\S* +-$`,
		`(?m)^server +raw_exec +running +false +- +2 +2026-11-20T12:00:00\S* +- +process: pid 17 in state D$`,
		`(?m)^Events of task "server"\nTime +Type +Message\n2026-11-20T12:00:01\S* +Started +Task started by client\n2026-11-20T12:00:00\S* +Received +-$`,
	} {
		must.RegexMatch(t, regexp.MustCompile(line), out.String())
	}
}

// An allocation shows the moves of its data, with the average speed until their end or until now.
func TestAllocStatus_data(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	show := func(in, out *cluster.DataMove) string {
		var text bytes.Buffer
		base := &cli.Base{Stdio: cli.Stdio{Out: &text}}
		base.SectionIfAny("Data", dataTable(wire.NewAllocation(&cluster.Allocation{ID: "a1", ClientStatus: cluster.ClientPending, DataIn: in, DataOut: out}, "global"), nil, false, at.Add(time.Minute)))
		return text.String()
	}
	must.Eq(t, "", show(nil, nil))
	for want, moves := range map[string][2]*cluster.DataMove{
		`(?m)^from +11111111 +copying +3\.0 MiB +102\.4 KiB/s +0 +2026-11-20T12:00:30\S* +- +-$`: {
			{State: cluster.DataCopying, Peer: "11111111-2222", Bytes: 3 << 20, StartedAt: at.Add(30 * time.Second)}},
		`(?m)^from +11111111 +copied +3\.0 MiB +1\.0 MiB/s +2 +2026-11-20T12:00:00\S* +2026-11-20T12:00:03\S* +-$`: {
			{State: cluster.DataCopied, Peer: "11111111-2222", Bytes: 3 << 20, Skipped: 2, StartedAt: at, EndedAt: at.Add(3 * time.Second)}},
		`(?m)^from +- +waiting +0 B +- +0 +- +- +allocation x has not ended$`: {{State: cluster.DataWaiting, Why: "allocation x has not ended"}},
		`(?m)^to +33333333 +given up +9 B +- +0 +2026-11-20T12:00:03\S* +2026-11-20T12:00:00\S* +no room$`: { // the clocks of client and servers differ
			nil, {State: cluster.DataGivenUp, Peer: "33333333-4444", Bytes: 9, Why: "no room", StartedAt: at.Add(3 * time.Second), EndedAt: at}},
	} {
		must.RegexMatch(t, regexp.MustCompile(want), show(moves[0], moves[1]))
	}
}

// The data of an ended allocation has the reason for which it has not moved, which its replacement has. Bugs: no
// reason was shown, and an ended replacement showed a copy for ever.
func TestAllocStatus_dataNotCopied(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	kept := &cluster.DataMove{State: cluster.DataKept}
	in := func(s cluster.DataState, why string) *cluster.DataMove {
		return &cluster.DataMove{State: s, Peer: "a1", Why: why, Bytes: 9, StartedAt: at}
	}
	for name, c := range map[string]struct {
		out  *cluster.DataMove
		next *cluster.Allocation
		want string
	}{
		"no replacement": {kept, nil, `(?m)^to +- +kept +0 B .* no replacement takes it yet$`},
		"waits": {kept, &cluster.Allocation{ClientStatus: cluster.ClientPending, DataIn: in(cluster.DataWaiting, "its turn")},
			`(?m)^to +22222222 +kept +9 B .* its replacement waits: its turn$`},
		"copies": {kept, &cluster.Allocation{ClientStatus: cluster.ClientPending, DataIn: in(cluster.DataCopying, "the stream was cut")},
			`(?m)^to +22222222 +kept +9 B .* its replacement copies it: the stream was cut$`},
		"has ended": {kept, &cluster.Allocation{ClientStatus: cluster.ClientComplete, DataIn: in(cluster.DataCopying, "")},
			`(?m)^to +22222222 +kept +9 B .* its replacement ended before it had the data$`},
		"lost": {nil, &cluster.Allocation{ClientStatus: cluster.ClientRunning, DataIn: in(cluster.DataGivenUp, "allocation a1 is lost")},
			`(?m)^to +22222222 +given up +9 B .* allocation a1 is lost$`},
		"runs": {nil, &cluster.Allocation{ClientStatus: cluster.ClientPending, DataIn: in(cluster.DataWaiting, "")}, `^$`},
	} {
		var text bytes.Buffer
		base := &cli.Base{Stdio: cli.Stdio{Out: &text}}
		var next *wire.Allocation
		if c.next != nil {
			c.next.ID = "22222222-3333"
			next = wire.NewAllocation(c.next, "global")
			if c.next.Terminal() {
				must.RegexMatch(t, regexp.MustCompile(`(?m)^from +a1 +unfinished +9 B +- .* the allocation ended before it had the data$`), dataText(next, at))
			}
		}
		base.SectionIfAny("Data", dataTable(wire.NewAllocation(&cluster.Allocation{ID: "a1", ClientStatus: cluster.ClientComplete, DataOut: c.out}, "global"), next, false, at.Add(time.Minute)))
		must.RegexMatch(t, regexp.MustCompile(c.want), text.String(), must.Sprint(name))
	}
}

func dataText(a *wire.Allocation, at time.Time) string {
	var text bytes.Buffer
	base := &cli.Base{Stdio: cli.Stdio{Out: &text}}
	base.SectionIfAny("Data", dataTable(a, nil, false, at.Add(time.Minute)))
	return text.String()
}

// The exit code is that of the last end of a process, if the client has reported one.
func TestExitCodeOf(t *testing.T) {
	t.Parallel()
	ended := func(message string, details map[string]string) *wire.TaskEvent {
		return &wire.TaskEvent{Type: "Terminated", Message: message, Details: details}
	}
	for want, events := range map[string][]*wire.TaskEvent{
		"-": {{Type: "Started"}},
		"3": {ended("Exit Code: 1", nil), ended("Exit Code: 3", nil), {Type: "Restarting"}},
		"9": {ended("killed", map[string]string{"exit_code": "9"})},
	} {
		must.Eq(t, want, exitCodeOf(&wire.TaskState{Events: events}))
	}
	must.Eq(t, "-", exitCodeOf(&wire.TaskState{Events: []*wire.TaskEvent{ended("Exit Code: 1", nil), ended("The exit code is unknown", nil)}}))
}

// An allocation beside its replacement names it, and the replacement stands by. A list shows the latter.
func TestAllocStatus_surge(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	requested := cluster.DesiredTransition{Surge: "d0000000-1111", SurgeAt: at}
	marked := requested
	marked.Drain, marked.Migrate = "d0000000-1111", true
	for _, c := range []struct {
		alloc cluster.Allocation
		want  string
	}{
		{cluster.Allocation{}, ""},
		{cluster.Allocation{DesiredTransition: requested}, "replacement requested 2026-11-20T12:00:00 by drain d0000000; it has no place yet"},
		{cluster.Allocation{DesiredTransition: requested, NextAllocation: "22222222-3333"}, "replacement requested 2026-11-20T12:00:00 by drain d0000000; it leaves when 22222222 is healthy"},
		{cluster.Allocation{DesiredTransition: marked, NextAllocation: "22222222-3333"}, "replacement requested 2026-11-20T12:00:00, before the mark"},
		{cluster.Allocation{Standby: true, PreviousAllocation: "1"}, "standby: the allocation that it replaces is still in place"},
	} {
		must.Eq(t, c.want, surgeText(wire.NewAllocation(&c.alloc, "global"), false))
		var facts bytes.Buffer
		allocFacts(wire.NewAllocation(&c.alloc, "global"), false).Write(&facts)
		must.Eq(t, c.want != "", strings.Contains(facts.String(), "Surge"), must.Sprint(facts.String()))
	}
	stub := wire.NewAllocationListStub(&cluster.Allocation{DesiredStatus: cluster.DesiredRun, Standby: true})
	must.StrContains(t, StubTable([]*wire.AllocationListStub{stub}, false, at).String(), "run (standby)")
}
