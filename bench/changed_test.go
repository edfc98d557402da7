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

// changedPerNode is how many allocations a node has, and one of changedDrain drains.
const changedPerNode, changedDrain = 10, 10

// changes is how many allocations are changed, one after the other.
const changes = 1000

// figureChanged: a changed allocation of a job that drains costs the drainer what that
// job has, whatever else drains.
func figureChanged(b *testing.B) {
	sizes := []int{1000, 20_000}
	if measure.SizeOf(b) == measure.Full {
		sizes = []int{1000, 10_000, 100_000, 1_000_000}
	}
	for _, jobSize := range []int{100, 1000} {
		var smallest float64
		for i, allocs := range sizes {
			c := changedCase{allocs: allocs, jobSize: jobSize}
			// Built when the first of the figures that are asked for needs it, and let go of
			// with the loop: the largest takes minutes and gigabytes.
			town := sync.OnceValue(func() *town { return c.town(b) })
			b.Run("rows/"+c.String(), func(b *testing.B) {
				rows := c.rows(b, town())
				if i == 0 {
					smallest = rows
				} else if smallest == 0 {
					first := changedCase{allocs: sizes[0], jobSize: jobSize}
					smallest = first.rows(b, first.town(b))
				}
				measure.Count(b, rows-smallest, "extra-rows")
				b.ReportMetric(rows, "rows")
			})
			if jobSize == 100 {
				b.Run("cpu/"+c.String(), func(b *testing.B) { c.compare(b, town()) })
				roomy := c
				roomy.room = true
				b.Run("cpu/"+roomy.String(), func(b *testing.B) { roomy.compare(b, roomy.town(b)) })
			}
		}
		c := changedCase{allocs: sizes[0], jobSize: jobSize}
		b.Run("history/"+c.String(), func(b *testing.B) {
			with := c
			with.ended = 5 * jobSize
			measure.Count(b, with.rows(b, with.town(b))-c.rows(b, c.town(b)), "extra-rows")
		})
	}
}

// changedCase is a cluster all of whose jobs drain.
type changedCase struct {
	allocs, jobSize, ended int
	// room is whether the groups' pace leaves room for more marks, with nothing left to
	// mark. Without it each waits for the one it has marked.
	room bool
}

func (c changedCase) String() string {
	name := fmt.Sprintf("%d-allocations-in-jobs-of-%d", c.allocs, c.jobSize)
	if c.room {
		name += "-with-room"
	}
	return name
}

// town returns the cluster, and begins the drains.
func (c changedCase) town(b *testing.B) *town {
	maxParallel := 1
	if c.room {
		maxParallel = c.jobSize
	}
	t := newTown(b, townPlan{
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

// change changes one allocation: each is of another job as long as there are some, and
// on a draining node as often as allocations are.
func (c changedCase) change(t *town, i int) {
	t.edit(func(txn *statestore.Txn) {
		jobs := c.allocs / c.jobSize
		updateAlloc(txn, allocOf(i%jobs, i%c.jobSize), i)
	})
}

// changedAt is when a change is made: the drainer may look at the state at each.
func changedAt(i int) time.Time { return epoch.Add(time.Duration(i+1) * 10 * time.Millisecond) }

// rows is how many rows the drainer reads for a changed allocation of the town.
func (c changedCase) rows(b *testing.B, t *town) float64 {
	state := &counting{StateReader: t.fsm.Store().Reader()}
	l := leadFrom(t, state)
	defer l.term.Close()
	l.settle(epoch)
	writes := l.writes
	state.rows, l.steps = 0, 0
	for i := range changes {
		c.change(t, i)
		l.step(changedAt(i))
	}
	must.Eq(b, changes, l.steps) // each was looked at
	must.Eq(b, writes, l.writes) // and called for nothing
	must.Positive(b, state.rows)
	return float64(state.rows) / changes
}

// compare compares changed allocations that the drainer looks at with the same writes
// alone, as the store makes them: accounts are kept and a feed could be told. What such
// a write costs on bare go-memdb is the figure "other-writes".
func (c changedCase) compare(b *testing.B, t *town) {
	// All is marked at one time, in which the default allows too few looks for the largest.
	first := leadWith(t, t.fsm.Store().Reader(), drainer.NodeDrainerConfig{StateQueriesPerSecond: 1e6})
	first.settle(epoch)
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
			l.settle(epoch)
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
