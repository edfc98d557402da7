package setting

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// rowsPerCollection bounds the rows of one entry that deletes ended rows. It is small, so that a
// round has several entries and other entries come between them.
const rowsPerCollection = 8

// entriesPerRound bounds the entries that delete all allocations of a large cluster. Each entry
// costs a search of the whole state.
const entriesPerRound = 200

// Collection returns the options with which a leader deletes ended rows of an age, in a cluster
// with this number of allocations. The age is also the time between two rounds. With zero the
// leader deletes nothing.
func Collection(age time.Duration, allocs int) collect.Options {
	if age == 0 {
		return collect.Options{Interval: scenario.Never} // no round ever begins
	}
	rows := max(rowsPerCollection, allocs/entriesPerRound)
	return collect.Options{Interval: age, AllocAge: age, EvalAge: age, JobAge: age, MaxBatch: rows}
}
