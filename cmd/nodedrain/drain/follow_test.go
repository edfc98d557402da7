package drain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

var began = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// drainingNode returns a node that drains with a deadline.
func drainingNode(limit time.Duration) *wire.Node {
	return &wire.Node{ID: "n1", Status: "ready", DrainStrategy: &wire.DrainStrategy{
		Deadline: limit, StartedAt: wire.NewTime(began), ForceDeadline: wire.NewTime(began.Add(limit)),
	}}
}

// observed returns allocations from words: id, type of the job, desired status, status of the client, and
// "marked" for one that a drain has marked.
func observed(list ...string) (allocs []*wire.Allocation) {
	for _, text := range list {
		words := strings.Fields(text)
		a := &wire.Allocation{ID: words[0], JobID: "job", TaskGroup: "web", DesiredStatus: words[2], ClientStatus: words[3], Job: &wire.Job{Type: &words[1]}}
		if migrate := len(words) > 4; migrate {
			a.DesiredTransition = &wire.DesiredTransition{Migrate: &migrate}
		}
		allocs = append(allocs, a)
	}
	return allocs
}

// texts returns the texts of events.
func texts(events []event) (list []string) {
	for _, e := range events {
		list = append(list, e.text)
	}
	return list
}

// A request for a replacement is a line of its own, before the mark.
func TestFollower_surge(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	must.SliceEmpty(t, f.updateNode(drainingNode(time.Hour), nil))
	must.SliceEmpty(t, f.updateAllocs(observed("a1 service run running")))
	requested := observed("a1 service run running")
	requested[0].DesiredTransition = &wire.DesiredTransition{SurgeDrainID: "d1", SurgeAt: wire.NewTime(began)}
	must.Eq(t, []string{`Alloc "a1" replacement requested`}, texts(f.updateAllocs(requested)))
	moved := observed("a1 service run running marked")
	moved[0].DesiredTransition.SurgeDrainID = "d1"
	must.Eq(t, []string{`Alloc "a1" marked for migration`}, texts(f.updateAllocs(moved)))
}

// The monitor prints the lines of Nomad's command, from the first mark to the end.
func TestFollower_story(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	must.SliceEmpty(t, f.updateNode(drainingNode(time.Hour), nil))
	must.SliceEmpty(t, f.updateAllocs(observed("a1 service run running", "a2 service run running")))
	must.Eq(t, []string{`Alloc "a1" marked for migration`}, texts(f.updateAllocs(observed("a1 service run running marked", "a2 service run running"))))
	must.Eq(t, []string{`Node "n1" drain updated: ` + cli.LocalTimes("2026-01-02T12:30:00Z") + " deadline"}, texts(f.updateNode(drainingNode(30*time.Minute), nil)))
	must.SliceEmpty(t, f.updateNode(drainingNode(30*time.Minute), nil))
	forced := &wire.Node{ID: "n1", Status: "ready", DrainStrategy: &wire.DrainStrategy{Deadline: -1, StartedAt: wire.NewTime(began)}}
	must.Eq(t, []string{`Node "n1" drain updated: force drain`}, texts(f.updateNode(forced, nil)))
	must.Eq(t, 1, len(f.updateNode(drainingNode(30*time.Minute), nil)))
	must.Eq(t, []string{`Alloc "a1" draining`, `Alloc "a2" marked for migration`}, texts(f.updateAllocs(observed("a1 service stop running marked", "a2 service run running marked"))))
	must.Eq(t, []string{`Alloc "a1" status running -> complete`, `Alloc "a2" draining`}, texts(f.updateAllocs(observed("a1 service stop complete marked", "a2 service stop running marked"))))
	must.Eq(t, "1 of 2 allocations left", f.progress(began.Add(10*time.Second)).String())

	down := drainingNode(30 * time.Minute)
	down.Status = "down"
	must.Eq(t, []string{`Node "n1" down`}, texts(f.updateNode(down, nil)))

	ended := &wire.Node{ID: "n1", Status: "ready", LastDrain: &wire.DrainMetadata{Status: "complete"}}
	must.Eq(t, []string{"Drain complete for node n1"}, texts(f.updateNode(ended, &wire.Drain{Outcome: "complete"})))
	must.False(t, f.over())
	must.Eq(t, []string{`Alloc "a2" status running -> complete`, `All allocations on node "n1" have stopped`}, texts(f.updateAllocs(observed("a1 service stop complete marked", "a2 service stop complete marked"))))
	must.True(t, f.over())
	must.False(t, f.cancelled)
}

// The node of an allocation cannot be reached, and the drain waits until the servers give the allocation up. Bug: the
// monitor printed "0 of 0 allocations left" beside the reason why it waited.
func TestFollower_disconnected(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	f.updateNode(drainingNode(time.Hour), nil)
	f.updateAllocs(observed("a1 service run unknown"))
	must.Eq(t, "1 of 1 allocation left", f.progress(began).String())
	f.updateNode(&wire.Node{ID: "n1", Status: "disconnected"}, &wire.Drain{Outcome: "unconfirmed"})
	must.True(t, f.over(), must.Sprint("a drain with a deadline does not wait for it"))
	must.Eq(t, "0 of 1 allocation left", f.progress(began).String())
}

// A slow read contains several changes of an allocation at once; the monitor prints all of them.
func TestFollower_several(t *testing.T) {
	t.Parallel()
	var f Follower
	f.updateAllocs(observed("a1 service run running", "a2 batch run running"))
	must.Eq(t, []string{`Alloc "a1" marked for migration`, `Alloc "a1" draining`, `Alloc "a1" status running -> complete`},
		texts(f.updateAllocs(observed("a1 service stop complete marked", "a2 batch run running"))))
}

// Events carry the times that the servers have recorded, not the time of the read.
func TestFollower_times(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	f := Follower{Node: "n1"}
	f.updateNode(drainingNode(time.Hour), nil)
	f.updateAllocs(observed("a1 service run running"))

	stopped := observed("a1 service stop complete marked")[0]
	stopped.DesiredTransition.MarkedAt, stopped.StoppedAt = wire.NewTime(at(1)), wire.NewTime(at(2))
	stopped.ModifyTime = at(7).UnixNano()
	times(t, []time.Time{at(1), at(2), at(7)}, f.updateAllocs([]*wire.Allocation{stopped}))
	must.SliceEmpty(t, f.updateAllocs([]*wire.Allocation{stopped})) // the end is reported once

	down := drainingNode(30 * time.Minute)
	down.Status, down.StatusUpdatedAt = "down", at(9).Unix()
	down.LastDrain = &wire.DrainMetadata{UpdatedAt: wire.NewTime(at(8))}
	times(t, []time.Time{at(9), at(8)}, f.updateNode(down, nil))
	must.SliceEmpty(t, f.updateNode(down, nil)) // nothing is new

	web := leftAlloc("web", "below budget", "2 of 4 healthy")
	later := web
	web.Since, later.Since = wire.NewTime(at(3)), wire.NewTime(at(4))
	times(t, []time.Time{at(3)}, f.updateReport(report(later, web)))

	ended := &wire.Node{ID: "n1", LastDrain: &wire.DrainMetadata{Status: "complete", UpdatedAt: wire.NewTime(at(11))}}
	// Bug: the last line had the time of the last stop, before that of the lines above it.
	times(t, []time.Time{at(10), at(10), at(10)}, f.updateNode(ended, &wire.Drain{Outcome: "forced", EndedAt: wire.NewTime(at(10))}))
	must.SliceEmpty(t, f.updateNode(ended, nil)) // the end is reported once
	f = Follower{Node: "n1"}
	times(t, []time.Time{at(11)}, f.updateNode(ended, nil))
}

// times checks the times of events.
func times(t *testing.T, want []time.Time, events []event) {
	t.Helper()
	must.Len(t, len(want), events)
	for i, e := range events {
		must.True(t, e.at.Equal(want[i]), must.Sprint(e))
	}
}

func TestFollower_ended(t *testing.T) {
	t.Parallel()
	node := func(status string, meta map[string]string) *wire.Node {
		return &wire.Node{ID: "n1", LastDrain: &wire.DrainMetadata{Status: status, Meta: meta}}
	}
	for name, test := range map[string]struct {
		node      *wire.Node
		record    *wire.Drain
		want      []string
		cancelled bool
	}{
		"complete":         {node("complete", nil), &wire.Drain{Outcome: "complete"}, []string{"Drain complete for node n1"}, false},
		"nothing kept":     {&wire.Node{ID: "n1"}, nil, []string{"Drain complete for node n1"}, false},
		"deadline reached": {node("complete", nil), &wire.Drain{Outcome: "deadline reached"}, []string{"Drain complete for node n1", "Outcome: deadline reached"}, false},
		"still stopping": {
			node("complete", nil),
			&wire.Drain{Outcome: "forced", StillStopping: 1},
			[]string{"Drain complete for node n1", "Outcome: forced; 1 allocation still stopping"},
			false,
		},
		"unconfirmed": {
			node("complete", nil),
			&wire.Drain{Outcome: "unconfirmed", Unconfirmed: 2},
			[]string{"Drain complete for node n1", "Outcome: unconfirmed; 2 unconfirmed allocations"},
			false,
		},
		"unconfirmed and still stopping": {
			node("complete", nil),
			&wire.Drain{Outcome: "deadline reached", StillStopping: 2, Unconfirmed: 1},
			[]string{"Drain complete for node n1", "Outcome: deadline reached; 2 allocations still stopping; 1 unconfirmed allocation"},
			false,
		},
		"volumes left": {
			node("complete", nil),
			&wire.Drain{Outcome: "complete", VolumesLeft: &wire.VolumeHolds{More: 2, Volumes: []wire.VolumeHold{
				{Namespace: "default", Volume: "data", AllocID: "a1", Path: "/mnt/data", Reason: "busy:\nprocess 7 (tail)"},
				{Namespace: "ops", Volume: "logs", AllocID: "a2"},
			}}},
			[]string{
				"Drain complete for node n1", "Left on the node: volume data of allocation a1 at /mnt/data: busy: process 7 (tail)",
				"Left on the node: volume ops/logs of allocation a2", "Left on the node: 2 volumes more",
			},
			false,
		},
		"data not copied": {
			node("complete", nil),
			&wire.Drain{Outcome: "complete", DataNotCopied: &wire.DataNotCopied{Count: 3, Allocs: []string{"a1", "a2"}}},
			[]string{
				"Drain complete for node n1", "Outcome: complete; data of 3 allocations not copied", "Data not copied: allocation a1", "Data not copied: allocation a2", "Data not copied: 1 allocation more",
			},
			false,
		},
		"cancelled": {node("canceled", nil), &wire.Drain{Outcome: "cancelled"}, []string{`Drain of node "n1" was cancelled`}, true},
		"cancelled, and why": {
			node("canceled", map[string]string{"cancel_message": "wrong\nnode"}),
			nil,
			[]string{`Drain of node "n1" was cancelled: wrong node`},
			true,
		},
	} {
		f := Follower{Node: "n1"}
		must.Eq(t, test.want, texts(f.updateNode(test.node, test.record)), must.Sprint(name))
		must.Eq(t, test.cancelled, f.cancelled, must.Sprint(name))
		must.Eq(t, test.cancelled, f.over(), must.Sprint(name))
	}
}

// The monitor does not wait for ignored system jobs, except storage plugins, nor for lost allocations. It counts
// unknown ones until the drain has ended, as the drain does.
func TestFollower_left(t *testing.T) {
	t.Parallel()
	plugin := observed("a4 system run running")[0]
	plugin.Job.TaskGroups = []*wire.TaskGroup{{Tasks: []*wire.Task{{CSIPluginConfig: &wire.CSIPlugin{ID: "ebs"}}}}}
	all := append(observed("a1 service run running", "a2 batch run pending", "a3 system run running", "a5 service stop lost", "a6 service run unknown", "a7 batch run failed"), plugin)
	for want, f := range map[int]Follower{
		5: {Strategy: &wire.DrainStrategy{}},
		4: {Strategy: &wire.DrainStrategy{IgnoreSystemJobs: true}},
	} {
		f.updateAllocs(all)
		must.Eq(t, want, f.Left())
		f.SkipSystem = true
		must.Eq(t, 4, f.Left())
	}
	ended := Follower{Strategy: &wire.DrainStrategy{}, DrainEnded: true}
	ended.updateAllocs(all)
	must.Eq(t, 4, ended.Left())
}

// A storage plugin that serves an ignored system job stays. The servers name it: in their
// report, or with a drain that ended although the plugin runs.
func TestFollower_leftPlugin(t *testing.T) {
	t.Parallel()
	plugin := observed("p1 system run running")[0]
	plugin.Job.TaskGroups = []*wire.TaskGroup{{Tasks: []*wire.Task{{CSIPluginConfig: &wire.CSIPlugin{ID: "disks"}}}}}
	for name, ends := range map[string]func(f *Follower){
		"reported": func(f *Follower) {
			f.updateReport(report(wire.DrainAlloc{ID: "p1", Reason: "left by request"}))
			f.updateNode(&wire.Node{}, &wire.Drain{Outcome: "deadline reached", StillStopping: 1})
		},
		"ended": func(f *Follower) { f.updateNode(&wire.Node{}, &wire.Drain{Outcome: "complete"}) },
	} {
		f := Follower{SkipSystem: true}
		f.updateAllocs([]*wire.Allocation{plugin})
		must.Eq(t, 1, f.Left(), must.Sprint(name))
		ends(&f)
		f.updateAllocs([]*wire.Allocation{plugin})
		must.True(t, f.over(), must.Sprint(name))
	}
}

func report(allocs ...wire.DrainAlloc) *wire.NodeDrain {
	return &wire.NodeDrain{State: wire.StateDraining, Progress: &wire.DrainProgress{EndsBy: wire.NewTime(began.Add(time.Hour))}, Allocs: allocs}
}

func leftAlloc(group, reason, detail string) wire.DrainAlloc {
	return wire.DrainAlloc{Namespace: "default", JobID: "shop", TaskGroup: group, Reason: reason, Detail: detail}
}

// A group that does not move has one line with its reason, and another when the reason changes. A reason that
// this build does not have is one, too.
func TestFollower_report(t *testing.T) {
	t.Parallel()
	var f Follower
	web := leftAlloc("web", "waiting for room", "3 of 4 healthy, max_parallel 1; 1 of the group leaves or arrives")
	must.Eq(t, []string{
		"Waiting: 2 of default/shop.web: waiting for room: 3 of 4 healthy, max_parallel 1; 1 of the group leaves or arrives",
		"Waiting: 1 of default/shop.cron: batch running: until done",
	}, texts(f.updateReport(report(leftAlloc("cron", "batch running", "until done"), web, web, leftAlloc("web", "stopping", "may take 5s")))))
	must.SliceEmpty(t, f.updateReport(report(web, leftAlloc("cron", "batch running", "until done"))))
	must.Eq(t, []string{"Waiting: 1 of default/shop.web: below budget: 2 of 4 healthy"},
		texts(f.updateReport(report(leftAlloc("web", "below budget", "2 of 4 healthy")))))
	must.SliceLen(t, 1, f.updateReport(report(leftAlloc("web", "a reason of a newer server", ""))))
	must.SliceEmpty(t, f.updateReport(&wire.NodeDrain{State: wire.StateEnded}))

	f.updateAllocs(observed("a1 service run running"))
	must.StrContains(t, f.progress(began).String(), "1 of 1 allocation left, at least 1 round, ends by ")
}

// The line of a group names what causes its reason and the command that shows more. A row of a bar has the
// short ids of the cause, and no detail. Both named nothing.
func TestFollower_cause(t *testing.T) {
	t.Parallel()
	var f Follower
	const id = "3f2a9b01-aaaa-bbbb-cccc-000000000000"
	web := leftAlloc("web", "below budget", "2 of 4 healthy")
	web.Cause, web.See = "alloc "+id+" on node-7 is unhealthy", "nodedrain alloc status "+id
	must.Eq(t, []string{"Waiting: 1 of default/shop.web: below budget: 2 of 4 healthy; alloc " + id + " on node-7 is unhealthy; see: nodedrain alloc status " + id},
		texts(f.updateReport(report(web))))
	must.Eq(t, "1 of default/shop.web: below budget: alloc 3f2a9b01 on node-7 is unhealthy", f.held[0].short())
}

// Placements on the draining node have an event when their number has doubled, and a leader that cannot
// write has one when that begins. The monitor printed neither.
func TestFollower_foreign(t *testing.T) {
	t.Parallel()
	var f Follower
	read := func(placed int, stalled string) []string {
		r := report()
		r.Progress.Placed, r.Progress.Stalled = placed, stalled
		r.Progress.NewestPlaced = &wire.DrainPlacement{AllocID: "a9", Namespace: "default", JobID: "web"}
		return texts(f.updateReport(r))
	}
	must.SliceEmpty(t, read(0, ""))
	must.Eq(t, []string{"Placed: 1 allocation after the drain began, which a scheduler must not do; the newest is a9 of job web"}, read(1, ""))
	must.SliceEmpty(t, read(1, ""))
	must.SliceLen(t, 1, read(2, ""))
	must.Eq(t, []string{"Stalled: no answer"}, read(3, "no answer"))
	must.SliceEmpty(t, read(3, "no answer for longer"))
	must.SliceEmpty(t, read(3, ""))
	must.SliceLen(t, 1, read(3, "no answer"))
}

// After the end of the drain the monitor prints what it waits for: a task whose driver is off may never end.
func TestFollower_lingering(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	f.updateNode(drainingNode(time.Minute), nil)
	web, other := observed("a1 service stop running marked")[0], observed("a2 service stop running marked")[0]
	web.Namespace, other.Namespace = "default", "default"
	web.TaskStates = map[string]*wire.TaskState{"main": {Waiting: &wire.TaskWait{For: "driver", Detail: "the driver raw_exec is not healthy"}}, "side": {}}
	other.TaskGroup, other.ClientDescription = "db", "stopping (waiting for 1 volumes)"
	must.SliceEmpty(t, f.updateAllocs([]*wire.Allocation{web, other}))
	must.SliceEmpty(t, f.updateReport(report(leftAlloc("web", "stopping", "may take 5s"))))
	ended := &wire.Node{ID: "n1", Status: "ready", LastDrain: &wire.DrainMetadata{Status: "complete"}}
	must.Eq(t, []string{
		"Drain complete for node n1",
		"Outcome: deadline reached; 2 allocations still stopping",
		"Waiting: 1 of default/job.db: stopping: stopping (waiting for 1 volumes)",
		`Waiting: 1 of default/job.web: stopping: task "main" waits for driver: the driver raw_exec is not healthy`,
	}, texts(f.updateNode(ended, &wire.Drain{Outcome: "deadline reached", StillStopping: 2})))
	must.SliceEmpty(t, f.updateAllocs([]*wire.Allocation{web, other}), must.Sprint("nothing is new"))
	must.SliceLen(t, 2, f.progress(began).held, must.Sprint("the bar shows it"))
	stopped := observed("a2 service stop complete marked")[0]
	web.TaskStates["main"].Waiting.For = "process"
	must.Eq(t, []string{
		`Alloc "a2" status running -> complete`,
		`Waiting: 1 of default/job.web: stopping: task "main" waits for process: the driver raw_exec is not healthy`,
	}, texts(f.updateAllocs([]*wire.Allocation{web, stopped})))
	must.False(t, f.over())
}

// A drain ended by its deadline, and a process in state D keeps an allocation. Bug: the monitor waited for ever.
// It waits as long as the drain would have waited, if the drain ended earlier, and then for a while.
func TestFollower_givesUp(t *testing.T) {
	t.Parallel()
	ended := func(outcome string, endsBy time.Time) *Follower {
		f := &Follower{Node: "n1"}
		f.updateNode(drainingNode(time.Minute), nil)
		f.updateAllocs(observed("a1 service stop running marked", "a2 system stop running marked"))
		f.updateReport(&wire.NodeDrain{State: wire.StateDraining, Progress: &wire.DrainProgress{EndsBy: wire.NewTime(endsBy)}})
		must.SliceEmpty(t, f.giveUp(began.Add(time.Hour)), must.Sprint("the drain has not ended"))
		node := &wire.Node{ID: "n1", Status: "ready", LastDrain: &wire.DrainMetadata{Status: "complete"}}
		f.updateNode(node, &wire.Drain{ID: "d1", Outcome: outcome, StillStopping: 2, EndedAt: wire.NewTime(began)})
		return f
	}
	later := began.Add(time.Hour) // the clock of the monitor differs from that of the servers
	for _, outcome := range []string{"deadline reached", "forced"} {
		for _, early := range []time.Duration{0, time.Minute} {
			f := ended(outcome, began.Add(early))
			must.SliceEmpty(t, f.giveUp(later))
			must.SliceEmpty(t, f.giveUp(later.Add(early+overtime-1)))
			must.False(t, f.over())
			must.Eq(t, []string{`2 allocations on node "n1" did not stop in time and may never stop`}, texts(f.giveUp(later.Add(early+overtime))))
			must.True(t, f.over())
			must.SliceEmpty(t, f.giveUp(later.Add(time.Hour)))
			u := f.unconfirmed()
			must.Eq(t, []string{"Unconfirmed: allocation a1 of job.web", "Unconfirmed: allocation a2 of job.web"}, u.Lines(), must.Sprint("below cluster version 8 no record counts them"))
		}
	}
	f := ended("complete", began)
	must.SliceEmpty(t, f.giveUp(later))
	must.SliceEmpty(t, f.giveUp(later.Add(time.Hour)), must.Sprint("with the completion policy marked it may need any time"))
}

// Allocations that arrive increase the total.
func TestLeaving(t *testing.T) {
	t.Parallel()
	var l leaving
	l.update(100)
	l.update(90)
	must.Eq(t, leaving{left: 90, most: 100}, l)
	l.update(95)
	must.Eq(t, leaving{left: 95, most: 105}, l)
}

// With a replacement beside them, max_surge allocations of a group leave in a round.
func TestRoundsLeft_surge(t *testing.T) {
	t.Parallel()
	var left []wire.DrainAlloc
	for range 5 {
		left = append(left, wire.DrainAlloc{Stage: "consumers", JobID: "shop", TaskGroup: "web", MaxParallel: 1, MaxSurge: 3})
	}
	must.Eq(t, 2, roundsLeft(left, nil, began))
}

// A group needs a round for every max_parallel allocations, and each stage waits for the one before.
func TestRoundsLeft(t *testing.T) {
	t.Parallel()
	of := func(n int, stage, group, reason string, maxParallel int) (list []wire.DrainAlloc) {
		for range n {
			list = append(list, wire.DrainAlloc{Stage: stage, JobID: "shop", TaskGroup: group, Reason: reason, MaxParallel: maxParallel})
		}
		return list
	}
	web := of(5, "consumers", "web", "waiting for room", 2)
	db := of(4, "consumers", "db", "waiting for room", 1)
	logs := of(3, "system", "logs", "waiting for stage", 0)
	ignored := of(3, "system", "logs", "left by request", 0)
	plugin := of(1, "storage plugins", "csi", "waiting for stage", 0)
	finite := &wire.DrainStrategy{Deadline: time.Hour, ForceDeadline: wire.NewTime(began.Add(time.Hour))}
	for _, c := range []struct {
		name   string
		allocs []wire.DrainAlloc
		s      *wire.DrainStrategy
		want   int
	}{
		{"nothing", nil, nil, 0},
		{"one group", web, finite, 3},
		{"the slower group", slices.Concat(web, db), finite, 4},
		{"all stages", slices.Concat(web, logs, plugin), finite, 5},
		{"left by request", slices.Concat(web, ignored), finite, 3},
		{"no paced moves", of(3, "consumers", "frozen", "no paced moves", 0), finite, 1},
		{"forced", slices.Concat(web, db, logs), &wire.DrainStrategy{Deadline: -1}, 2},
		{"deadline reached", web, &wire.DrainStrategy{Deadline: time.Hour, ForceDeadline: wire.NewTime(began)}, 1},
	} {
		must.Eq(t, c.want, roundsLeft(c.allocs, c.s, began), must.Sprint(c.name))
	}
}

// Without a terminal a line is written only after a change.
func TestDrainLines(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	l := NewLines(&out, &errs)
	for _, left := range []int{2, 2, 2, 1, 1, 0, 0} {
		l.progress(drainProgress{leaving: leaving{left: left, most: 2}, at: began})
	}
	l.event(began, "something")
	l.trouble(began, "trouble")
	stamp := cli.LocalTimes("2026-01-02T12:00:00Z") + ": "
	must.Eq(t, stamp+"2 of 2 allocations left\n"+stamp+"1 of 2 allocations left\n"+stamp+"0 of 2 allocations left\n"+stamp+"something\n", out.String())
	must.Eq(t, stamp+"trouble\n", errs.String())
}

func TestRough(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1400 * time.Millisecond: "1s", 90 * time.Second: "1m30s", time.Hour: "1h00m", 26*time.Hour + 5*time.Minute: "26h05m",
	} {
		must.Eq(t, want, cli.Rough(d))
	}
}

// Bug: the node became eligible while a task still stopped, and the last line stated that all had stopped.
func TestFollower_eligibleAgain(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	f.updateNode(drainingNode(time.Hour), nil)
	f.updateAllocs(observed("a1 service stop running marked"))
	ended := &wire.Node{ID: "n1", Status: "ready", SchedulingEligibility: "ineligible", LastDrain: &wire.DrainMetadata{Status: "complete"}}
	f.updateNode(ended, &wire.Drain{Outcome: "deadline reached", StillStopping: 1, EndIndex: 5})
	must.EqOp(t, "", f.InUse())
	eligible := *ended
	eligible.SchedulingEligibility = "eligible"
	must.SliceEmpty(t, f.updateNode(&eligible, nil))
	must.False(t, f.over())
	must.Eq(t, []string{`Alloc "a1" status running -> complete`, `Node "n1" takes work again: it is eligible`}, texts(f.updateAllocs(observed("a1 service stop complete marked"))))
	must.True(t, f.over())
}

// Bug: a job that was a system job became a service, and its old allocation, which stopped, counted as one that
// stays by request.
func TestFollower_systemAllocationThatStops(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1", SkipSystem: true}
	f.updateNode(drainingNode(time.Hour), nil)
	f.updateAllocs(observed("a1 system run running", "a2 system stop running"))
	f.updateNode(&wire.Node{ID: "n1", Status: "ready"}, &wire.Drain{Outcome: "complete"})
	must.False(t, f.over())
	must.Eq(t, []string{`Alloc "a2" status running -> complete`, `All other allocations on node "n1" have stopped; 1 allocation stays by request: job`},
		texts(f.updateAllocs(observed("a1 system run running", "a2 system stop complete"))))
	must.True(t, f.over())
}
