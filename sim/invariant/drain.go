package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drain is the judge's record of one drain.
type drain struct {
	id   cluster.DrainID
	node cluster.NodeID
	// marked counts the drain's marks by class.
	marked [cluster.MarkClassCount]int
	ended  bool
	// deadlines are all deadlines that the drain has had.
	deadlines []time.Time
	// keys are the idempotency keys of all requests for the drain, oldest first.
	keys []string
}
