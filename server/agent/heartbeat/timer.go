package heartbeat

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// timer is the state of one node.
type timer struct {
	node  cluster.NodeID
	state state
	// until is the time at which the timer expires.
	until time.Time
	// alive means that a heartbeat arrived during the write.
	alive bool
}

type state uint8

const (
	// armed: the timer waits for a heartbeat.
	armed state = iota
	// missed: the timer has expired. The next step may return the change to down.
	missed
	// returned: a down node has sent a heartbeat. The next step may return the change to ready.
	returned
	// writing: the change is being written.
	writing
)
