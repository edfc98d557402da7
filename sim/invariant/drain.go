package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drain is the judge's record of the requests for one drain.
type drain struct {
	node cluster.NodeID
	// deadlines are all deadlines that the drain has had.
	deadlines []time.Time
	// keys are the idempotency keys of all requests for the drain, oldest first.
	keys []string
}
