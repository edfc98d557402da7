package main

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// changedPerNode is the number of allocations of a node. One of every changedDrain nodes drains.
const changedPerNode, changedDrain = 10, 10

// changes is the number of allocations that change, one after the other.
const changes = 10_000

// figureChanged: the cost of a changed allocation of a job that drains depends on the size of the
// job, not on other drains.
func figureChanged(b *testing.B) {
	sizes := []int{1000, 20_000}
	if measure.SizeOf(b) == measure.Full {
		sizes = []int{1000, 10_000, 100_000, 1_000_000}
	}
	for _, jobSize := range []int{100, 1000} {
		var smallest float64
		for i, allocs := range sizes {
			c := changedCase{allocs: allocs, jobSize: jobSize}
			// The first figure that needs the cluster builds it. The garbage collector frees it
			// after the loop: the largest takes minutes and gigabytes.
			built := sync.OnceValue(func() *testCluster { return c.build(b) })
			b.Run("rows/"+c.String(), func(b *testing.B) {
				rows := c.rows(b, built())
				if i == 0 {
					smallest = rows
				} else if smallest == 0 {
					first := changedCase{allocs: sizes[0], jobSize: jobSize}
					smallest = first.rows(b, first.build(b))
				}
				measure.Count(b, rows-smallest, "extra-rows")
				b.ReportMetric(rows, "rows")
			})
			if jobSize == 100 {
				b.Run("cpu/"+c.String(), func(b *testing.B) { c.compare(b, built()) })
				withSlot := c
				withSlot.freeSlot = true
				b.Run("cpu/"+withSlot.String(), func(b *testing.B) { withSlot.compare(b, withSlot.build(b)) })
			}
		}
		c := changedCase{allocs: sizes[0], jobSize: jobSize}
		b.Run("history/"+c.String(), func(b *testing.B) {
			with := c
			with.ended = 5 * jobSize
			measure.Count(b, with.rows(b, with.build(b))-c.rows(b, c.build(b)), "extra-rows")
		})
	}
}

// changedCase is a cluster in which all jobs drain.
type changedCase struct {
	allocs, jobSize, ended int
	// freeSlot means that the budget of each group has a free slot and nothing is left to mark.
	// Otherwise each group waits for its marked allocation.
	freeSlot bool
}

func (c changedCase) String() string {
	name := fmt.Sprintf("%d-allocations-in-jobs-of-%d", c.allocs, c.jobSize)
	if c.freeSlot {
		name += "-with-room"
	}
	return name
}

func (c changedCase) build(b *testing.B) *testCluster {
	maxParallel := 1
	if c.freeSlot {
		maxParallel = c.jobSize
	}
	t := newCluster(b, clusterPlan{
		nodes: c.allocs / changedPerNode, perNode: changedPerNode, jobSize: c.jobSize, layout: dealt,
		job: cluster.JobService, maxParallel: maxParallel, ended: c.ended,
	})
	var draining []cluster.NodeID
	for i := 0; i < len(t.nodes); i += changedDrain {
		draining = append(draining, t.nodes[i])
	}
	t.drainNodes(draining, cluster.DrainSpec{})
	return t
}

// change changes one allocation. Consecutive calls change allocations of different jobs. Some of the
// allocations are on draining nodes.
func (c changedCase) change(t *testCluster, i int) {
	t.edit(func(txn *statestore.Txn) {
		jobs := c.allocs / c.jobSize
		updateAlloc(txn, allocOf(i%jobs, i%c.jobSize), i)
	})
}

// changedAt returns the time of a change. The changes are so far apart that the drainer may query the
// state after each of them.
func changedAt(i int) time.Time { return epoch.Add(time.Duration(i+1) * 10 * time.Millisecond) }

// rows returns the number of rows that the drainer reads for a changed allocation.
func (c changedCase) rows(b *testing.B, t *testCluster) float64 {
	state := &rowCounter{StateReader: t.fsm.Store().Reader()}
	l := leadFrom(t, state)
	defer l.term.Close()
	l.runUntilIdle(epoch)
	writes := l.writes
	state.rows, l.steps = 0, 0
	for i := range changes {
		c.change(t, i)
		l.step(changedAt(i))
	}
	must.Eq(b, changes, l.steps) // the drainer made a step for each change
	must.Eq(b, writes, l.writes) // no change required a write
	must.Positive(b, state.rows)
	return float64(state.rows) / changes
}

// compare compares changed allocations and the drainer's steps with the writes alone. The store
// keeps its counts and its feed in both. The figure "other-writes" compares such a write with bare
// go-memdb.
func (c changedCase) compare(b *testing.B, t *testCluster) {
	// All marks have one time. The default allows too few state queries at one time for the largest
	// cluster.
	first := leadWith(t, t.fsm.Store().Reader(), drainer.NodeDrainerConfig{StateQueriesPerSecond: 1e6})
	first.runUntilIdle(epoch)
	first.term.Close()
	measure.Figure(b,
		func() func(*measure.Meter) {
			return func(*measure.Meter) {
				for i := range changes {
					c.change(t, i)
				}
			}
		},
		func() func(*measure.Meter) {
			l := lead(t)
			l.runUntilIdle(epoch)
			must.Zero(b, l.writes)
			l.steps = 0
			return func(*measure.Meter) {
				for i := range changes {
					c.change(t, i)
					l.step(changedAt(i))
				}
				must.Eq(b, changes, l.steps)
				l.term.Close()
			}
		},
	).Report(b)
}
