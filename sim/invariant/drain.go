package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drain is the judge's record of one drain.
type drain struct {
	id   cluster.DrainID
	node cluster.NodeID
	// marked counts the marks that entries have made, by class.
	marked [cluster.MarkClassCount]int
	ended  bool
	// deadlines are all that its strategies have had.
	deadlines []time.Time
	// keys are the idempotency keys of the requests that made the drain what it is, by the
	// log, oldest first.
	keys []string
}
