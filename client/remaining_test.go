//race:skip one goroutine
package client_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// The first process of a main task has ended by itself, and an orphan of it is in state D. Bug: the
// allocation stayed healthy, and nothing named the process.
func TestCore_orphanInStateD(t *testing.T) {
	const orphan = "[pid 4711 (state D): dd]"
	n := newRunning(t, script{}, time.Minute)
	must.True(t, *n.servers["a"].Healthy)
	id := n.disk["a"].Tasks[0].ID

	n.core.DriverEvent("mock", n.driver.generation, driver.Event{
		Task: id, Message: "the first process has ended with exit code 1, and processes remain: " + orphan,
		Annotations: map[string]string{driver.WaitsFor: orphan},
	})
	n.run(time.Second)
	remains := func() {
		t.Helper()
		must.EqOp(t, cluster.ClientRunning, n.status("a"))
		must.False(t, *n.servers["a"].Healthy)
		must.Eq(t, &cluster.TaskWait{For: cluster.WaitProcess, Detail: orphan}, n.servers["a"].TaskStates.State("web").Waiting)
		must.StrContains(t, n.messages("a", "web"), "ended with exit code 1, and processes remain: "+orphan)
	}
	remains()

	// Another process of the driver reports no event. Inspect has the processes.
	n.scripts["web"] = script{waitsFor: orphan}
	n.killDriver()
	n.run(time.Minute)
	remains()
	n.crash()
	n.answer()
	n.run(time.Hour)
	remains()

	// The driver reports that the process has gone, and the task runs.
	n.scripts["web"] = script{}
	n.killDriver()
	n.run(time.Minute)
	must.True(t, *n.servers["a"].Healthy)
	must.Nil(t, n.servers["a"].TaskStates.State("web").Waiting)
}
