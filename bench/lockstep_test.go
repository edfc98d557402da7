package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// countEntries counts the entries and the rounds of drains in lockstep, each as a
// multiple of as few as there can be.
func (r *drainRuns) countEntries(b *testing.B) {
	d := r.begin(b, drainer.NodeDrainerConfig{})
	of := d.inLockstep(r.c, r.plan.maxParallel)
	measure.Count(b, of.rounds, "rounds")
	measure.Count(b, of.markEntries, "mark-entries")
	measure.Count(b, of.endEntries, "end-entries")
	measure.Count(b, d.rounds, "rounds-in-all")
	measure.Count(b, d.markEntries, "mark-entries-in-all")
	measure.Count(b, d.endEntries, "end-entries-in-all")
}

// lockstepCount is what drains in lockstep took, as multiples of the floor.
type lockstepCount struct{ rounds, markEntries, endEntries float64 }

// inLockstep runs drains in lockstep, in a town of the pace given. A round is all that
// the drainer wants, and then all that the scheduler and the clients make of it, of which
// the drainer sees nothing before the last of it is applied. So it is with the requests.
func (d *drains) inLockstep(c drainCase, maxParallel int) lockstepCount {
	d.lockstep, d.answering = true, true
	floor := c.floor(d.town, maxParallel)
	d.run(new(measure.Meter))
	return lockstepCount{
		rounds:      float64(d.rounds) / float64(floor.rounds),
		markEntries: float64(d.markEntries) / float64(floor.markEntries),
		endEntries:  float64(d.endEntries) / float64(d.endFloor),
	}
}

// lockstepFloor is the least that drains take in lockstep.
type lockstepFloor struct{ rounds, markEntries int }

// floor follows from what is to leave and from the pace, not from what the drainer does:
// in each round every group moves what its pace allows of what it has left, with one
// evaluation for its job.
func (c drainCase) floor(t *town, maxParallel int) (f lockstepFloor) {
	leaving := map[cluster.GroupKey]int{}
	state := t.fsm.Store().Snapshot()
	for _, n := range t.nodes[:c.drained] {
		for a := range state.LiveAllocsByNode(n) {
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

// entriesOf is how many entries so many ids fit into.
func entriesOf(ids int) int {
	const bound = drainer.DefaultMaxIDsPerEntry
	return (ids + bound - 1) / bound
}

// beginRound notes which drains can end in this round.
func (d *drains) beginRound() { d.endFloor += entriesOf(d.emptied()) }

// emptied counts the nodes that drain and have nothing left to wait for.
func (d *drains) emptied() (count int) {
	state := d.fsm.Store().Snapshot()
	for n := range state.DrainingNodes() {
		if state.Consumers(n.ID) == 0 {
			count++
		}
	}
	return count
}

// endRound has the scheduler answer a round, and reports whether there was anything to
// answer.
func (d *drains) endRound() bool {
	if len(d.stops) == 0 {
		return false
	}
	must.Zero(d.tb, d.emptied()) // what could end has
	d.rounds++
	for _, s := range d.stops {
		d.plan(s)
	}
	d.stops, d.answering = nil, true
	return true
}
