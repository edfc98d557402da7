package redact

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A reader gets the client's own sentences about what a task waits for, and not those that may repeat a
// command line or an error of a driver.
func TestTaskStates_waits(t *testing.T) {
	t.Parallel()
	for kind, shown := range map[cluster.WaitKind]bool{
		cluster.WaitShutdownDelay: true, cluster.WaitGrace: true, cluster.WaitDisk: true, cluster.WaitDevice: true, cluster.WaitPort: true, cluster.WaitCore: true,
		cluster.WaitDriver: false, cluster.WaitProcess: false, "new": false,
	} {
		states := TaskStates(&cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "t", Waiting: &cluster.TaskWait{For: kind, Detail: "why"}}}})
		must.EqOp(t, shown, states.Tasks[0].Waiting.Detail == "why", must.Sprint(kind))
	}
}
