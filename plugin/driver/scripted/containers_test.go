package scripted_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// containers are the options of a driver that keeps tasks in containers and answers WaitTask early.
func containers(s scripted.Script) scripted.Options {
	o := script(s)
	o.Capabilities.HostCgroup, o.Containers, o.EarlyWait, o.Parent = false, true, true, scripted.InDriver
	return o
}

// WaitTask answers with code 0 while the task stops: a call that is open, and a later one.
// InspectTask, StopTask, and WaitTask after the end report the truth.
func TestDriver_earlyWait(t *testing.T) {
	t.Parallel()
	n := newNode(t, containers(scripted.Script{StopTakes: 2 * time.Second, StopExit: &driver.ExitResult{Code: 7}}))
	n.started("web")
	open := n.wait("web")
	n.clock.pass(time.Hour)
	must.Zero(t, open.count)
	stop := n.stop("web", time.Minute, "")
	later := n.wait("web")
	n.clock.pass(time.Second)
	must.NoError(t, answered(n, open))
	must.NoError(t, answered(n, later))
	must.EqOp(t, driver.ExitResult{}, open.value)
	must.EqOp(t, driver.ExitResult{}, later.value)
	must.Zero(t, stop.count)
	must.EqOp(t, driver.TaskRunning, n.inspect("web").value.State)
	n.clock.pass(time.Second)
	must.NoError(t, answered(n, stop))
	must.EqOp(t, driver.TaskExited, n.inspect("web").value.State)
	after := n.wait("web")
	n.clock.pass(0)
	must.EqOp(t, 7, after.value.Code)
}

func (n *node) inspect(id driver.TaskID) *reply[driver.Status] {
	n.Helper()
	r := call(n, func(reply func(driver.Status, error)) { n.driver.Inspect(id, reply) })
	n.clock.pass(0)
	must.NoError(n, answered(n, r))
	return r
}

// DestroyTask of a task that is being stopped forgets the task and does not kill it. StopTask kills
// it at the end of the grace.
func TestDriver_destroyDuringAStop(t *testing.T) {
	t.Parallel()
	n := newNode(t, containers(scripted.Script{IgnoreSignals: true}))
	n.started("web")
	began := n.clock.now
	stop := n.stop("web", 5*time.Second, "")
	destroy := n.destroy("web")
	n.clock.pass(time.Second)
	must.NoError(t, answered(n, destroy))
	must.False(t, n.main("web").Ended)
	n.clock.pass(time.Minute)
	must.NoError(t, answered(n, stop))
	must.EqOp(t, began.Add(5*time.Second), n.main("web").EndedAt)
}

// The client does not reach a container through its own cgroup. Judges find it there.
func TestMachine_container(t *testing.T) {
	t.Parallel()
	n := newNode(t, containers(scripted.Script{Child: &scripted.Child{RunFor: time.Hour}}))
	n.started("web")
	n.machine.KillCgroup(cgroup, scripted.ByClient)
	must.SliceEmpty(t, n.machine.LivingIn(cgroup))
	emptied := false
	n.machine.AwaitEmpty(cgroup, func() { emptied = true })
	n.clock.pass(0)
	must.True(t, emptied)
	found := 0
	for range n.machine.EachLivingIn(cgroup) {
		found++
	}
	must.EqOp(t, 2, found)
	destroy := n.destroy("web")
	n.clock.pass(0)
	must.NoError(t, answered(n, destroy))
	must.EqOp(t, 1, len(n.machine.Living())) // the driver
}
