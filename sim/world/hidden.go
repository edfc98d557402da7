package world

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Hidden gives the facts of a world that are in no snapshot of the state.
type Hidden struct{ world *World }

// Held reports whether the world delays a due step of the leader's drainer, or hides the newest
// state from it. The reason is a late wake-up, a paused process, an old view, or a term that is
// not established.
func (h Hidden) Held() bool {
	w := h.world
	l := w.Servers.leader
	return l.reader.held() || w.now.Before(l.established) || l.server.paused(w.now) || l.drainerAlarm.pending()
}

// Ended reports whether an allocation's client has reported the end of its tasks, and knows
// that the report was applied.
func (h Hidden) Ended(id cluster.AllocID) bool { return h.world.clients.ended[id] }
