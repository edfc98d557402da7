package world

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Hidden are the facts of a world that no state shows.
type Hidden struct{ world *World }

// Held reports whether the leader's drainer is kept from a step that is due, or from the
// newest state: by a late wake-up, a paused process, an old view, or a term that is not
// established.
func (h Hidden) Held() bool {
	w := h.world
	l := w.Servers.leader
	return l.reader.held() || w.now.Before(l.established) || l.server.paused(w.now) || l.drainerAlarm.pending()
}

// Ended reports whether an allocation's client has reported the end of its tasks, and knows
// that the report was applied.
func (h Hidden) Ended(id cluster.AllocID) bool { return h.world.clients.ended[id] }
