package main

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// manyTasks are the tasks of a node that is drained, and whose client is restarted.
func manyTasks(b *testing.B, measured func(b *testing.B, n *testNode, j *cluster.Job)) {
	mocks, processes := 100, 20
	if measure.SizeOf(b) == measure.Full {
		mocks, processes = 500, 100
	}
	b.Run("mock="+strconv.Itoa(mocks), func(b *testing.B) {
		n := newTestNode(b)
		measured(b, n, n.mocks(mocks))
	})
	b.Run("raw_exec="+strconv.Itoa(processes), func(b *testing.B) {
		n := newTestNode(b)
		measured(b, n, n.processes("processes", processes, 0))
	})
}

// figureNodeDrain: a forced drain of tasks that end at once is over soon.
func figureNodeDrain(b *testing.B) {
	manyTasks(b, func(b *testing.B, n *testNode, j *cluster.Job) {
		n.register(j)
		var times []time.Duration
		for range measure.PairsOf(b) {
			// The servers place the job again when the node is eligible again.
			all := n.running(j.TaskGroups[0].Count)
			began := time.Now()
			_, err := n.writer.UpdateDrain(context.Background(), cluster.DrainUpdate{Node: n.id, Spec: &cluster.DrainSpec{Deadline: -1}})
			must.NoError(b, err)
			n.awaitEnds(all)
			var last time.Duration
			for _, a := range all {
				_, ended := n.timesOf(a.ID)
				last = max(last, ended.Sub(began))
			}
			times = append(times, last)
			n.eligible()
		}
		reportTimes(b, "time", times, 3*time.Second)
		n.reportLoad()
	})
}

// eligible waits for the end of the drain and makes the node eligible again.
func (n *testNode) eligible() {
	n.await("end of the drain", func(s *statestore.Snapshot) bool { return s.Node(n.id).Drain == nil })
	_, err := n.writer.UpdateEligibility(context.Background(), n.id, cluster.NodeEligible)
	must.NoError(n.b, err)
}
