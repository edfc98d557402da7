package heartbeat

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// timer is the state of one node.
type timer struct {
	node  cluster.NodeID
	state state
	// until is the time by which the next heartbeat is due.
	until time.Time
	// heard reports that a heartbeat arrived while the timer was writing.
	heard bool
}

// state is how far a timer is.
type state uint8

const (
	// armed waits for the node, until then.
	armed state = iota
	// missed waits for its turn to be written as down.
	missed
	// returned waits for its turn to be written as ready.
	returned
	// writing waits for the answer of the write.
	writing
)
