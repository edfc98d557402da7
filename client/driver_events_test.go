package client_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// What a driver reports about a task is among the events of the task, up to a bound: a driver that
// reports all the time pushes out no event of the client, and costs few records.
func TestCore_driverEvents(t *testing.T) {
	n := newNode(t)
	n.scripts["later"] = script{runs: []ending{{after: time.Second}}}
	n.place(allocation("a", mainTask("web"), hooked("later", cluster.HookPoststop, false)))
	n.run(time.Minute)
	n.core.DriverEvent("mock", n.driver.generation, driver.Event{Message: "no task"})
	id := n.disk["a"].Tasks[0].ID
	n.core.DriverEvent("mock", n.driver.generation, driver.Event{Task: id, Message: "the image is old"})
	n.core.DriverEvent("mock", n.driver.generation, driver.Event{Task: "another", Message: "another start"})
	n.core.DriverEvent("mock", n.driver.generation+1, driver.Event{Task: id, Message: "another process"})
	n.core.DriverEvent("raw_exec", 1, driver.Event{Task: id, Message: "another driver"})
	n.run(time.Minute)
	must.StrContains(t, n.messages("a", "web"), "the image is old")
	must.StrNotContains(t, n.messages("a", "web"), "another")
	must.StrNotContains(t, n.messages("a", "later"), "no task", must.Sprint("the task has no id before its start"))

	saves, last := 0, n.disk["a"]
	for i := range 1000 {
		n.core.DriverEvent("mock", n.driver.generation, driver.Event{Task: id, Message: fmt.Sprintf("layer %d", i)})
		n.run(10 * time.Millisecond)
		if n.disk["a"] != last {
			saves, last = saves+1, n.disk["a"]
		}
	}
	must.Between(t, 3, saves, 6)
	n.run(time.Second)
	events := n.servers["a"].TaskStates.State("web").Events
	must.Eq(t, "Received", events[0].Type)
	must.Eq(t, 3, strings.Count(n.messages("a", "web"), "layer"))

	leaves(n, "a", time.Minute)
	n.core.DriverEvent("mock", n.driver.generation, driver.Event{Task: id, Message: "late"})
	n.run(time.Minute)
	must.StrNotContains(t, n.messages("a", "web"), "late")
	completed(n, "a")
}
