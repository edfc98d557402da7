package client_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A client starts while the watchdog of an earlier one stops an allocation. One task has ended, and
// one ignores its signal.
func TestCore_watchdogStops(t *testing.T) {
	const reason = "stopped by the watchdog: no client has reached a server for 1m0s"
	begin := func(t *testing.T) *node {
		n := newNode(t)
		a := allocation("a", mainTask("obeys"), mainTask("ignores"), hooked("side", cluster.HookPrestart, true))
		a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
		a.Job.TaskGroups[0].ShutdownDelay = time.Hour
		n.scripts["ignores"] = script{ignores: true}
		n.place(a)
		n.run(time.Minute - time.Second)
		n.exit(n.live("obeys")[0], 130, 2)
		n.stopped = []guard.Stopped{
			{Alloc: "a", BootID: "boot-1", After: time.Minute, Signals: map[string]time.Duration{"obeys": n.boot - 2*time.Second, "ignores": n.boot - 2*time.Second}},
			{Alloc: "gone", BootID: "boot-1", After: time.Minute},
		}
		return n
	}
	t.Run("the next client continues the stop", func(t *testing.T) {
		n := begin(t)
		signalAt := n.boot - 2*time.Second
		ignores := n.live("ignores")[0]
		n.core = nil // no event of the task reaches the dead client
		restarts(n, time.Second)
		n.crash() // the note is still there
		n.answer()
		reaches(n, "a", cluster.ClientComplete, time.Minute)
		must.EqOp(t, "Received, Started, Watchdog, Terminated, Killed", n.eventsOf("a", "obeys"))
		must.EqOp(t, "Received, Started, Watchdog, Terminated, Killed", n.eventsOf("a", "ignores"))
		must.EqOp(t, "Received, Started, Killing, Terminated, Killed", n.eventsOf("a", "side"))
		must.EqOp(t, reason, n.servers["a"].TaskStates.State("obeys").Events[2].Message)
		must.GreaterEq(t, signalAt+5*time.Second, ignores.killed, must.Sprint("the whole kill timeout"))
		must.Less(t, signalAt+7*time.Second, ignores.killed, must.Sprint("and not a second one"))
	})
	t.Run("the client was frozen", func(t *testing.T) {
		n := begin(t)
		for _, s := range append(n.stopped, n.stopped[0]) {
			n.core.StoppedByWatchdog(s)
		}
		n.exit(n.live("ignores")[0], 137, 9)
		reaches(n, "a", cluster.ClientComplete, time.Minute)
		must.EqOp(t, "Received, Started, Watchdog, Terminated, Killed", n.eventsOf("a", "ignores"))
	})
	t.Run("the machine has restarted", func(t *testing.T) {
		n := begin(t)
		n.bootID, n.boot = "boot-2", time.Minute
		for _, task := range n.live("") {
			n.exit(task, 0, 9)
			task.known = false
		}
		restarts(n, time.Minute)
		must.EqOp(t, cluster.ClientComplete, n.status("a"))
		must.EqOp(t, "Received, Started, Terminated, Watchdog, Not Restarting", n.eventsOf("a", "ignores"))
	})
}
