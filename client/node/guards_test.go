package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/client/watchdog"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// watchdog returns the process of the node's watchdog, or the zero value if none runs.
func (w *world) watchdog() process.Identity {
	w.Helper()
	content, err := os.ReadFile(filepath.Join(w.config.DataDir, watchdogDir, "lock"))
	if err != nil {
		return process.Identity{}
	}
	var holder struct{ Process process.Identity }
	if json.Unmarshal(content, &holder) != nil {
		return process.Identity{} // it is being written
	}
	if alive, err := holder.Process.Alive(); err != nil || !alive {
		return process.Identity{}
	}
	return holder.Process
}

// awaitWatchdog waits for a watchdog that is not this one.
func (w *world) awaitWatchdog(not process.Identity) process.Identity {
	w.Helper()
	var id process.Identity
	w.eventually("another watchdog runs", func() bool {
		id = w.watchdog()
		return !id.IsZero() && id != not
	})
	return id
}

func mayStop(after time.Duration) func(*cluster.TaskGroup) {
	return func(g *cluster.TaskGroup) {
		g.Disconnect.StopOnClientAfter = after
		g.Tasks[0].KillTimeout, g.Tasks[0].KillSignal = time.Minute, "SIGTERM"
	}
}

// A watchdog runs beside the client while it guards a task. It is started again when it dies, stays
// when the client stops, and is replaced by that of the next client.
func TestNode_watchdog(t *testing.T) {
	t.Parallel()
	w, _, _ := newRawExec(t, "exec sleep 600", mayStop(time.Hour))
	first := w.watchdog()
	must.NotEq(t, process.Identity{}, first, must.Sprint("it runs before the task"))
	must.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
	second := w.awaitWatchdog(first)
	w.stop()
	must.Eq(t, second, w.watchdog(), must.Sprint("it stays"))
	w.begin()
	third := w.watchdog()
	must.NotEq(t, process.Identity{}, third)
	must.NotEq(t, second, third)
	alive, err := second.Alive()
	must.NoError(t, err)
	must.False(t, alive, must.Sprint("one at a time"))
	w.awaitStatus(w.id, cluster.ClientRunning)
	w.stopRawExec()
	must.Eq(t, process.Identity{}, w.watchdog(), must.Sprint("nothing is left to guard"))
}

// A client without such tasks has no watchdog, and ends that of an earlier client.
func TestNode_noWatchdog(t *testing.T) {
	t.Parallel()
	w, _, _ := newRawExec(t, "exec sleep 600")
	must.Eq(t, process.Identity{}, w.watchdog())
	w.stop()
	left, err := watchdog.Start(t.Context(), w.watchdogOptions(bootclock.Now(), time.Hour))
	must.NoError(t, err)
	must.NoError(t, left.Release())
	w.begin()
	must.Eq(t, process.Identity{}, w.watchdog())
	w.awaitStatus(w.id, cluster.ClientRunning)
	w.stopRawExec()
}

// watchdogOptions are those of a client that guards the task. The servers have last answered it
// then.
func (w *world) watchdogOptions(contact, after time.Duration) watchdog.Options {
	w.Helper()
	one := guard.Guard{Alloc: w.id, After: after, StopTime: time.Minute, Tasks: []guard.Task{
		{Name: "t", Group: groupName(w.id, "t"), Phase: cluster.StopMain, Signal: "SIGTERM", KillTimeout: time.Minute},
	}}
	return watchdog.Options{
		Program: os.Args[0], Dir: filepath.Join(w.config.DataDir, watchdogDir), Groups: w.node.shell.tasks.groups, Contact: guard.Contact{Sent: contact}, Guards: []guard.Guard{one},
	}
}

// The watchdog stops the task of a dead client. The next client reports the exit as the driver
// returns it, does not restart the task, and removes the note at the end.
func TestNode_afterTheWatchdog(t *testing.T) {
	t.Parallel()
	w, _, _ := newRawExec(t, "trap 'exit 7' TERM; : >$READY; while :; do sleep 600 & wait; done", mayStop(time.Hour))
	w.stop()
	group, err := w.node.shell.tasks.group(w.id, "t")
	must.NoError(t, err)
	late, err := watchdog.Start(t.Context(), w.watchdogOptions(bootclock.Now(), time.Millisecond)) // in place of an hour
	must.NoError(t, err)
	must.NoError(t, late.Release())
	must.NoError(t, group.Wait(t.Context()))
	<-late.Ended()
	w.begin()
	w.awaitStatus(w.id, cluster.ClientComplete)
	var events []string
	w.servers.set(func() {
		for _, e := range w.servers.reported[w.id].TaskStates.Tasks[0].Events {
			events = append(events, e.Type+": "+e.Message)
		}
	})
	must.SliceContains(t, events, "Watchdog: stopped by the watchdog: no client has reached a server for 1ms")
	must.SliceContains(t, events, "Terminated: Exit Code: 7")
	must.SliceContains(t, events, "Killed: Task successfully killed")
	w.stop()
	must.Eq(t, 0, w.notes())

	// A client that died after the record of the end and before the removal of the note.
	must.NoError(t, os.WriteFile(filepath.Join(w.config.DataDir, watchdogDir, string(w.id)+".stopped"), []byte(`{"Alloc":"`+w.id+`"}`), 0o600))
	must.Eq(t, 1, w.notes())
	w.begin()
	must.Eq(t, 0, w.notes())
	w.stop()
}

// notes counts the notes of watchdogs.
func (w *world) notes() int {
	w.Helper()
	notes, err := watchdog.Notes(filepath.Join(w.config.DataDir, watchdogDir))
	must.NoError(w, err)
	return len(notes)
}

// The watchdog kills a task of a client that is frozen. The client continues, reports why the task ended,
// and does not restart it. The servers have answered it shortly before, so no deadline is the reason. Bug:
// the client restarted the task like one that has crashed.
func TestNode_killedByTheWatchdog(t *testing.T) {
	t.Parallel()
	w, _, _ := newRawExec(t, "exec sleep 600", mayStop(time.Hour))
	group, err := w.node.shell.tasks.group(w.id, "t")
	must.NoError(t, err)
	note := fmt.Sprintf(`{"Alloc":%q,"After":1000000,"Signals":{"t":%d}}`, w.id, bootclock.Now())
	must.NoError(t, os.WriteFile(filepath.Join(w.config.DataDir, watchdogDir, string(w.id)+".stopped"), []byte(note), 0o600))
	must.NoError(t, group.Kill(t.Context()))
	w.awaitStatus(w.id, cluster.ClientComplete)
	var events []string
	w.servers.set(func() {
		for _, e := range w.servers.reported[w.id].TaskStates.Tasks[0].Events {
			events = append(events, e.Type)
		}
	})
	must.SliceContains(t, events, "Watchdog")
	must.SliceNotContains(t, events, "Restarting")
	w.eventually("the note is removed", func() bool { return w.notes() == 0 })
	w.stopRawExec()
}

// A client that was frozen before the start of a task does not start it after the deadline.
func TestGuards_mayStart(t *testing.T) {
	t.Parallel()
	groups, err := cgroup.Find("/")
	must.NoError(t, err)
	if groups.Kind() == "none" {
		t.Skip("needs control groups")
	}
	g := newGuards(Options{Config: &config.Config{}}, t.TempDir(), groups, guard.Contact{}, nil, quiet())
	alloc := func(after time.Duration) *cluster.Allocation {
		group := &cluster.TaskGroup{Name: "g", Tasks: []*cluster.Task{{Name: "t"}}, Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: after}}
		return &cluster.Allocation{ID: "a", TaskGroup: "g", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{group}}}
	}
	must.NoError(t, g.mayStart(alloc(time.Hour)))
	must.NoError(t, g.mayStart(alloc(0)))
	must.ErrorContains(t, g.mayStart(alloc(1)), "no contact with the servers for 1ns")
	heartbeat := bootclock.Now() + time.Hour
	must.Positive(t, g.answered(guard.Contact{Sent: heartbeat}).Sent)
	must.NoError(t, g.mayStart(alloc(1)))
	must.EqOp(t, heartbeat, g.answered(guard.Contact{Sent: heartbeat + 1}).Sent, must.Sprint("the last heartbeat before"))
}
