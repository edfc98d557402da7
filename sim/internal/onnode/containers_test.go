//race:skip one goroutine
package onnode_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// A client reports the end of an allocation, with exit code 0, while a container of it runs.
func TestJudge_containerLives(t *testing.T) {
	t.Parallel()
	node, judge := newNode(machine.Options{
		Containers: true,
		Script:     func(*driver.TaskConfig) scripted.Script { return scripted.Script{StopTakes: 3 * time.Second} },
	})
	must.NoError(t, node.StartClient())
	node.Servers(wanted(allocation("a1")))
	_, err := node.Advance(begin.Add(time.Minute))
	must.NoError(t, err)
	must.SliceEmpty(t, judge.Violations())
	judge.Reported(node, []cluster.AllocReport{{Alloc: "a1", ClientStatus: cluster.ClientComplete, TaskStates: &cluster.TaskStates{
		Tasks: []cluster.TaskState{{Name: "web", State: cluster.TaskDead, Events: []cluster.TaskEvent{
			{Type: "Terminated", Time: node.Now(), Message: "Exit Code: 0"},
		}}},
	}}})
	var found []string
	for _, v := range judge.Violations() {
		found = append(found, v.Guarantee+" "+v.Check)
	}
	must.Eq(t, []string{"N3 not the truth", "N4 exit code wrong"}, found)
}
