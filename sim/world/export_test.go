package world

import (
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// LeaderReader is the reader of the leader's drainer. Its feeds are independent.
func (ss *Servers) LeaderReader() drainer.StateReader { return ss.leader.reader }

// Replay applies the whole log to a new server and returns its state.
func (ss *Servers) Replay() (*statestore.Snapshot, error) {
	r := newReplica(ss.world.options.From, func(shims.Applied) {})
	_, err := r.catchUp(ss.world.Log.entries)
	return r.state(), err
}
