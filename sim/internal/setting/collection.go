package setting

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/collect"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// rowsPerCollection bounds the rows of one entry that deletes ended rows. It is small, so that a
// round has several entries and other entries come between them.
const rowsPerCollection = 8

// Collection returns how the leader deletes ended rows of an age. The age is also the time between
// two rounds. With zero the leader deletes nothing.
func Collection(age time.Duration) collect.Options {
	if age == 0 {
		return collect.Options{Interval: scenario.Never} // no round ever begins
	}
	return collect.Options{Interval: age, AllocAge: age, EvalAge: age, JobAge: age, MaxBatch: rowsPerCollection}
}
