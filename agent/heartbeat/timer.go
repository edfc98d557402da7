package heartbeat

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// timer is what is known of one node.
type timer struct {
	node  cluster.NodeID
	state state
	// until is when the node has to be heard again.
	until time.Time
	// heard says, while writing, that the node was heard since.
	heard bool
}

// state is how far a timer is.
type state uint8

const (
	// armed waits for the node, until then.
	armed state = iota
	// missed waits for its turn to be written down.
	missed
	// returned waits for its turn to be written ready.
	returned
	// writing waits for what becomes of the write.
	writing
)
