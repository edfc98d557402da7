package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// countEntries counts the entries and the rounds of drains in lockstep, as multiples of the fewest
// possible.
func (r *drainRuns) countEntries(b *testing.B) {
	d := r.begin(b, drainer.NodeDrainerConfig{})
	counts := d.inLockstep(r.c, r.plan.maxParallel)
	measure.Count(b, counts.rounds, "rounds")
	measure.Count(b, counts.markEntries, "mark-entries")
	measure.Count(b, counts.endEntries, "end-entries")
	measure.Count(b, d.rounds, "rounds-in-all")
	measure.Count(b, d.markEntries, "mark-entries-in-all")
	measure.Count(b, d.endEntries, "end-entries-in-all")
}

// lockstepCount are the counts of drains in lockstep, as multiples of the floor.
type lockstepCount struct{ rounds, markEntries, endEntries float64 }

// inLockstep runs drains in lockstep. In a round the drainer makes all its writes, then the scheduler
// and the clients make theirs. The drainer makes its next step when all of these are applied. The
// requests for drains are a round too.
func (d *drains) inLockstep(c drainCase, maxParallel int) lockstepCount {
	d.lockstep, d.answering = true, true
	floor := c.floor(d.testCluster, maxParallel)
	d.run(new(measure.Meter))
	return lockstepCount{
		rounds:      float64(d.rounds) / float64(floor.rounds),
		markEntries: float64(d.markEntries) / float64(floor.markEntries),
		endEntries:  float64(d.endEntries) / float64(d.endFloor),
	}
}

// lockstepFloor are the smallest possible counts of drains in lockstep.
type lockstepFloor struct{ rounds, markEntries int }

// floor computes the floor from the allocations that have to leave and from the pace, not from the
// drainer's writes. In each round every group moves as many of its allocations as its pace allows,
// with one evaluation for its job.
func (c drainCase) floor(t *testCluster, maxParallel int) (f lockstepFloor) {
	leaving := map[cluster.GroupKey]int{}
	state := t.fsm.Store().Snapshot()
	for _, n := range t.nodes[:c.drained] {
		for a := range state.WorkView().LiveAllocsByNode(n) {
			leaving[a.GroupKey()]++
		}
	}
	for len(leaving) > 0 {
		f.rounds++
		ids := 0
		for g, left := range leaving {
			ids += min(maxParallel, left) + 1
			if leaving[g] = left - maxParallel; leaving[g] <= 0 {
				delete(leaving, g)
			}
		}
		f.markEntries += entriesOf(ids)
	}
	return f
}

// entriesOf returns the number of entries that hold so many ids.
func entriesOf(ids int) int {
	const bound = drainer.DefaultMaxIDsPerEntry
	return (ids + bound - 1) / bound
}

// beginRound adds the drains that can end in this round to the floor.
func (d *drains) beginRound() { d.endFloor += entriesOf(d.emptied()) }

// emptied counts the nodes whose drains can end.
func (d *drains) emptied() (count int) {
	state := d.fsm.Store().Snapshot()
	for n := range state.DrainView().DrainingNodes() {
		if state.DrainView().Consumers(n.ID) == 0 {
			count++
		}
	}
	return count
}

// endRound plans the marked allocations of a round. It reports whether there were any.
func (d *drains) endRound() bool {
	if len(d.stops) == 0 {
		return false
	}
	must.Zero(d.tb, d.emptied()) // every drain that could end has ended
	d.rounds++
	for _, s := range d.stops {
		d.plan(s)
	}
	d.stops, d.answering = nil, true
	return true
}
