//race:skip one goroutine
package guard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const second = time.Second

// one is the guard of an allocation with one task: 60 s without servers, 5 s of kill timeout.
func one(alloc cluster.AllocID) guard.Guard {
	return guard.Guard{Alloc: alloc, After: 60 * second, StopTime: 5 * second, Tasks: []guard.Task{{Name: "main", Phase: cluster.StopMain, KillTimeout: 5 * second}}}
}

// short is a guard whose StopOnClientAfter is shorter than the time between heartbeats.
func short() guard.Guard {
	g := one("a")
	g.After = 5 * second
	return g
}

// phases is the guard of an allocation with a task of each phase.
func phases() guard.Guard {
	g := guard.Guard{Alloc: "a", After: 60 * second, Delay: 2 * second, StopTime: 46 * second}
	for phase, name := range []string{"leader", "main", "sidecar", "poststop"} {
		g.Tasks = append(g.Tasks, guard.Task{Name: name, Phase: cluster.StopPhase(phase), ShutdownDelay: second, KillTimeout: 10 * second})
	}
	return g
}

// event happens at a second.
type event struct {
	at int
	do func(*guard.Watch)
}

func put(at int, g guard.Guard) event { return event{at, func(w *guard.Watch) { w.Put(g) }} }
func contact(at, sent int) event {
	return event{at, func(w *guard.Watch) { w.Contact(guard.Contact{Sent: time.Duration(sent) * second}) }}
}
func contactFor(at, sent, ttl int) event {
	return event{at, func(w *guard.Watch) {
		w.Contact(guard.Contact{Sent: time.Duration(sent) * second, TTL: time.Duration(ttl) * second})
	}}
}
func gone(at int) event { return event{at, func(w *guard.Watch) { w.Gone() }} }
func ended(at int, task string) event {
	return event{at, func(w *guard.Watch) { w.Ended("a", task) }}
}

// play returns the acts until a second, with their times. It steps a watch at each event and when
// the watch requests it.
func play(events []event, until int) (acts []string, over bool) {
	w := &guard.Watch{}
	now := time.Duration(0)
	for {
		for len(events) > 0 && time.Duration(events[0].at)*second <= now {
			events[0].do(w)
			events = events[1:]
		}
		due, wake := w.Step(now)
		for _, a := range due {
			word := "signal"
			if a.Kill {
				word = "kill"
			}
			acts = append(acts, fmt.Sprintf("%d %s %s/%s", now/second, word, a.Alloc, a.Task.Name))
		}
		if len(events) > 0 {
			wake = min(wake, time.Duration(events[0].at)*second)
		}
		if wake > time.Duration(until)*second {
			return acts, w.Over()
		}
		now = max(now, wake)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events []event
		until  int
		acts   []string
		over   bool
	}{
		"the client lives: nothing stops before it must have stopped everything": {
			[]event{put(0, one("a")), put(0, phases()), contact(0, 1)}, 116, nil, false,
		},
		"the client hangs: what it has not stopped is killed, in no order and without a signal": {
			[]event{put(0, phases()), contact(0, 1), ended(118, "leader"), ended(118, "main"), ended(118, "sidecar")}, 118,
			[]string{"117 kill a/leader", "117 kill a/main", "117 kill a/sidecar", "117 kill a/poststop", "118 kill a/poststop"}, false,
		},
		"a client that was frozen reaches the servers: what it starts later is killed at the next deadline": {
			[]event{put(0, one("a")), contact(0, 1), ended(77, "main"), contact(100, 99)}, 175,
			[]string{"76 kill a/main", "174 kill a/main", "175 kill a/main"}, false,
		},
		"a client that was frozen dies: what it has started since is stopped": {
			[]event{put(0, one("a")), contact(0, 1), ended(77, "main"), gone(80), ended(81, "main")}, 1000,
			[]string{"76 kill a/main", "80 signal a/main", "80 kill a/main"}, true,
		},
		"the deadline counts from the last heartbeat": {
			[]event{put(0, one("a")), contact(0, 1), contact(40, 39), gone(41), ended(100, "main")}, 1000,
			[]string{"99 signal a/main"}, true,
		},
		"a late answer to an early heartbeat changes nothing": {
			[]event{put(0, one("a")), contact(1, 10), contact(2, 3), gone(3), ended(71, "main")}, 1000,
			[]string{"70 signal a/main"}, true,
		},
		"a task that ignores its signal is killed, until it has no process": {
			[]event{put(0, one("a")), contact(0, 1), gone(2), ended(69, "main")}, 1000,
			[]string{"61 signal a/main", "66 kill a/main", "67 kill a/main", "68 kill a/main"}, true,
		},
		"an allocation that has ended is not stopped": {
			[]event{put(0, one("a")), contact(0, 1), {1, func(w *guard.Watch) { w.Remove("a"); w.Remove("b") }}, gone(2)}, 1000, nil, true,
		},
		"the client died in the middle of the stop: the kill timeout does not start again": {
			[]event{put(0, one("a")), contact(0, 1), gone(64), ended(68, "main")}, 1000,
			[]string{"64 signal a/main", "66 kill a/main", "67 kill a/main"}, true,
		},
		"a suspended machine wakes up late": {
			[]event{put(5000, one("a")), contact(5000, 1), gone(5000), ended(5001, "main")}, 6000,
			[]string{"5000 signal a/main", "5000 kill a/main"}, true,
		},
		"a task without processes is not killed": {
			[]event{put(0, one("a")), contact(0, 1), gone(2), ended(61, "main")}, 1000, nil, true,
		},
		"each allocation has its own deadline": {
			[]event{put(0, one("b")), put(0, func() guard.Guard { g := one("a"); g.After = 10 * second; return g }()), contact(0, 1), gone(2), ended(12, "main")}, 61,
			[]string{"11 signal a/main", "61 signal b/main"}, false,
		},
		"phases begin when the earlier ones have ended": {
			[]event{put(0, phases()), contact(0, 1), gone(2), ended(65, "leader"), ended(65, "poststop"), ended(70, "main"), ended(72, "sidecar")}, 1000,
			[]string{"64 signal a/leader", "66 signal a/main", "71 signal a/sidecar"}, true,
		},
		"phases begin when the earlier ones must have ended": {
			[]event{put(0, phases()), contact(0, 1), gone(2)}, 86,
			[]string{
				"64 signal a/leader", "74 kill a/leader", "75 kill a/leader", "75 signal a/main",
				"76 kill a/leader", "77 kill a/leader", "78 kill a/leader", "79 kill a/leader", "80 kill a/leader", "81 kill a/leader",
				"82 kill a/leader", "83 kill a/leader", "84 kill a/leader", "85 kill a/leader", "85 kill a/main",
				"86 kill a/leader", "86 kill a/main", "86 signal a/sidecar",
			}, false,
		},
		"all phases are late": {
			[]event{put(500, phases()), contact(500, 1), gone(500)}, 500,
			[]string{
				"500 signal a/leader", "500 kill a/leader", "500 signal a/main", "500 kill a/main",
				"500 signal a/sidecar", "500 kill a/sidecar", "500 signal a/poststop", "500 kill a/poststop",
			}, false,
		},
		"a client that sends its heartbeats in time keeps its tasks": {
			[]event{put(0, short()), contactFor(0, 1, 20), contactFor(8, 8, 20), contactFor(15, 15, 20), gone(16), ended(36, "main")}, 1000,
			[]string{"35 signal a/main"}, true,
		},
		"a long TTL does not lengthen the time for ever": {
			[]event{put(0, short()), contactFor(0, 1, 500), gone(16), ended(37, "main")}, 1000,
			[]string{"36 signal a/main"}, true,
		},
		"a hanging client is killed after the TTL": {
			[]event{put(0, short()), contactFor(0, 1, 20), ended(37, "main")}, 37, []string{"36 kill a/main"}, false,
		},
		"waits of centuries": {
			[]event{put(0, func() guard.Guard { g := one("a"); g.After = guard.Never; return g }()), contact(0, 1), gone(2)}, 100_000, nil, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acts, over := play(tt.events, tt.until)
			must.Eq(t, tt.acts, acts)
			must.Eq(t, tt.over, over)
		})
	}
}

// The servers wait for the deadline and the stop time. For each group, all tasks have got SIGKILL
// by then, and each task that was not late has got its whole kill timeout.
func TestWatch_endsWithinTheStopTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wait := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 20).Draw(t, "s")) * second })
		group := &cluster.TaskGroup{Name: "g", ShutdownDelay: wait.Draw(t, "delay"), Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: wait.Draw(t, "after") + 1}}
		for i := range rapid.IntRange(1, 5).Draw(t, "tasks") {
			task := &cluster.Task{Name: fmt.Sprint(i), ShutdownDelay: wait.Draw(t, "shutdown"), KillTimeout: wait.Draw(t, "timeout")}
			task.Leader = i == 0 && rapid.Bool().Draw(t, "leader")
			if hook := rapid.SampledFrom([]cluster.Hook{"", "", cluster.HookPrestart, cluster.HookPoststart}).Draw(t, "hook"); hook != "" && i > 0 {
				task.Lifecycle = &cluster.Lifecycle{Hook: hook, Sidecar: rapid.Bool().Draw(t, "sidecar")}
			}
			group.Tasks = append(group.Tasks, task)
		}
		g, guarded := guard.Of(&cluster.Allocation{ID: "a", TaskGroup: "g", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{group}}}, time.Hour)
		must.True(t, guarded)
		w := &guard.Watch{}
		w.Put(g)
		w.Contact(guard.Contact{Sent: second})
		w.Gone()
		end := second + g.After + group.StopTime()
		signals, kills := map[string]time.Duration{}, map[string]time.Duration{}
		for now := time.Duration(0); now <= end; {
			acts, wake := w.Step(now)
			for _, a := range acts {
				switch {
				case !a.Kill:
					signals[a.Task.Name] = now
				case kills[a.Task.Name] == 0:
					kills[a.Task.Name] = now
					must.Eq(t, signals[a.Task.Name]+a.Task.KillTimeout, now)
				}
			}
			now = wake
		}
		must.MapLen(t, len(g.Tasks), kills)
	})
}

// The servers rely on the end of a task after StopTimeOn and a margin. By then a watchdog has killed what
// a frozen client has left, with most of the margin to spare. A client that stops its tasks in order has
// its whole time for that.
func TestWatch_killsBeforeTheServersConfirm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wait := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 900).Draw(t, "s")) * second })
		node := &cluster.Node{HoldLimit: wait.Draw(t, "hold"), VolumeAllowance: wait.Draw(t, "allowance")}
		group := &cluster.TaskGroup{Name: "g", ShutdownDelay: wait.Draw(t, "delay"), Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: wait.Draw(t, "after") + 1}}
		for i := range rapid.IntRange(1, 3).Draw(t, "tasks") {
			task := &cluster.Task{Name: fmt.Sprint(i), ShutdownDelay: wait.Draw(t, "shutdown"), KillTimeout: wait.Draw(t, "timeout")}
			if hook := rapid.SampledFrom([]cluster.Hook{"", cluster.HookPoststart, cluster.HookPoststop}).Draw(t, "hook"); hook != "" && i > 0 {
				task.Lifecycle = &cluster.Lifecycle{Hook: hook}
			}
			group.Tasks = append(group.Tasks, task)
		}
		if rapid.Bool().Draw(t, "plugin") {
			group.Tasks[0].StoragePlugin, group.Tasks[0].CSIPlugin = true, &cluster.CSIPlugin{ID: "disks"}
		}
		a := &cluster.Allocation{ID: "a", TaskGroup: "g", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{group}}}
		g, guarded := guard.Of(a, node.HoldLimit)
		must.True(t, guarded)
		contact, ttl := wait.Draw(t, "contact")+1, wait.Draw(t, "ttl")
		w := &guard.Watch{}
		w.Put(g)
		w.Contact(guard.Contact{Sent: contact, TTL: ttl})
		acts, killAt := w.Step(0)
		must.SliceEmpty(t, acts)
		acts, _ = w.Step(killAt)
		must.Len(t, len(g.Tasks), acts)
		booted := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
		confirmed := cluster.StoppedByNodeAt(a, booted.Add(contact), a.StopTimeOn(node)).Sub(booted)
		must.LessEq(t, confirmed-15*second, killAt, must.Sprint("the node was deleted after the contact"))
		must.LessEq(t, confirmed+ttl-45*second, killAt, must.Sprint("the servers have missed a heartbeat"))
		must.GreaterEq(t, contact+g.After+a.StopTime()+cluster.KillMarginOfNode, killAt)
	})
}

// While heartbeats are answered, a watchdog does not wake up by itself. It wakes up once when they are not.
func TestWatch_wakeUps(t *testing.T) {
	t.Parallel()
	w := &guard.Watch{}
	w.Put(one("a"))
	w.Put(one("b"))
	for now := time.Duration(1); now < 3600*second; now += 10 * second {
		w.Contact(guard.Contact{Sent: now})
		acts, wakeAt := w.Step(now)
		must.SliceEmpty(t, acts)
		must.EqOp(t, now+75*second, wakeAt)
	}
	_, wakeAt := w.Step(3600 * second)
	acts, _ := w.Step(wakeAt)
	must.Len(t, 2, acts)
	w.Ended("a", "main")
	w.Ended("b", "main")
	acts, wakeAt = w.Step(wakeAt)
	must.SliceEmpty(t, acts)
	must.EqOp(t, guard.Never, wakeAt)
}

// The two forms of the limit agree.
func TestContact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wait := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(1, 90).Draw(t, "s")) * second })
		c, after, now := guard.Contact{Sent: wait.Draw(t, "sent"), TTL: wait.Draw(t, "ttl")}, wait.Draw(t, "after"), wait.Draw(t, "now")
		must.EqOp(t, now >= c.StopAt(after), c.Silence(now) >= after)
	})
}

func TestOf(t *testing.T) {
	t.Parallel()
	group := &cluster.TaskGroup{Name: "g", ShutdownDelay: second, Tasks: []*cluster.Task{
		{Name: "main", KillSignal: "SIGTERM", KillTimeout: 5 * second}, nil,
	}}
	a := &cluster.Allocation{ID: "a", TaskGroup: "g", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{group}}}
	_, guarded := guard.Of(a, time.Hour)
	must.False(t, guarded, must.Sprint("it may run without servers"))
	group.Disconnect.StopOnClientAfter = 60 * second
	g, guarded := guard.Of(a, time.Hour)
	must.True(t, guarded)
	expected := guard.Guard{
		Alloc: "a", After: 60 * second, Delay: second, StopTime: 6 * second,
		Tasks: []guard.Task{{Name: "main", Phase: cluster.StopMain, Signal: "SIGTERM", KillTimeout: 5 * second}},
	}
	must.Eq(t, expected, g)
	a.Job.TaskGroups = append(a.Job.TaskGroups, &cluster.TaskGroup{Name: "plugins", Tasks: []*cluster.Task{
		{Name: "disks", StoragePlugin: true, CSIPlugin: &cluster.CSIPlugin{ID: "disks"}},
	}})
	g, _ = guard.Of(a, time.Hour)
	must.Eq(t, expected, g, must.Sprint("another group of the job is a storage plugin: once the group waited for its volumes, too"))
	group.Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: "disks"}
	g, _ = guard.Of(a, time.Hour)
	must.Eq(t, time.Hour+second, g.Delay, must.Sprint("a storage plugin waits for volumes"))
	must.Eq(t, time.Hour+6*second, g.StopTime)
	a.TaskGroup = "other"
	_, guarded = guard.Of(a, time.Hour)
	must.False(t, guarded)
	a.Job = nil // an orphan
	_, guarded = guard.Of(a, time.Hour)
	must.False(t, guarded)
}
