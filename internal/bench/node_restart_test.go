package main

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figureNodeRestart: a client that was killed is started again, and takes over all tasks soon. It touches
// none of them.
func figureNodeRestart(b *testing.B) {
	manyTasks(b, func(b *testing.B, n *testNode, j *cluster.Job) {
		count := j.TaskGroups[0].Count
		n.register(j)
		n.running(count)
		others, tasks := n.others(), n.processesOf("task")
		var times []time.Duration
		for range measure.PairsOf(b) {
			times = append(times, n.restart(count))
		}
		must.Eq(b, others, n.others())
		must.Eq(b, tasks, n.processesOf("task"))
		for _, a := range n.running(count) {
			state := a.TaskStates.State("task")
			must.EqOp(b, 0, state.Restarts)
			must.SliceLen(b, 2, state.Events, must.Sprint("more happened than Received and Started: ", state.Events))
		}
		reportTimes(b, "time", times, 2*time.Second)
		n.reportLoad()
	})
}

// others returns the processes of the program beside the client: drivers and shims.
func (n *testNode) others() map[int]string {
	all := n.processesOf("nodedrain")
	delete(all, n.client.Process.Pid)
	return all
}

// restart kills the client and starts it again. It returns the time from the start until the client has
// taken over so many tasks.
func (n *testNode) restart(count int) time.Duration {
	n.crash()
	before := n.logged(takeOverLine)
	began := time.Now()
	n.begin()
	for n.logged(takeOverLine) < before+count {
		must.Less(n.b, patience, time.Since(began), must.Sprint("the client does not take over all tasks"))
		<-time.After(5 * time.Millisecond)
	}
	return time.Since(began)
}

// figureNodeReattach: the drivers outlive a client that was killed, and the next one stops a task as soon as
// the task lets it.
func figureNodeReattach(b *testing.B) {
	const own = 300 * time.Millisecond
	tasks := 5
	if measure.SizeOf(b) == measure.Full {
		tasks = 20
	}
	n := newTestNode(b)
	drivers := n.processesOf("nodedrain", "plugin")
	must.MapLen(b, 2, drivers)
	var times []time.Duration
	for part := range measure.PairsOf(b) {
		all := n.startEach(part, tasks, own)
		n.restart(tasks)
		var slowest time.Duration
		for _, s := range n.stopOneByOne(all) {
			must.GreaterEq(b, own, s.exited.Sub(s.signaled))
			slowest = max(slowest, s.ended.Sub(s.stopped)-s.exited.Sub(s.signaled))
		}
		times = append(times, slowest)
	}
	must.Eq(b, drivers, n.processesOf("nodedrain", "plugin"))
	reportTimes(b, "time", times, 200*time.Millisecond)
	n.reportLoad()
}
