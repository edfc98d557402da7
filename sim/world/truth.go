package world

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// Truth is what a world knows and no state shows.
type Truth struct{ world *World }

// Unseen is what the world knows and no state shows.
func (w *World) Unseen() Truth { return Truth{w} }

// Held reports whether anything keeps the leader's drainer from a step it is due, or
// from the newest state: a wake-up that is late, a process that is paused, a view that
// is behind, a term that is not established.
func (t Truth) Held() bool {
	w := t.world
	l := w.leader
	return l.server.behind != nil || w.now.Before(l.established) || w.now.Before(l.server.pausedUntil) ||
		len(l.drains.woken) > 0 || !l.drains.wokenAt.IsZero() || l.drains.merging
}

// Ended reports whether an allocation's client has said that its tasks have ended,
// and was told that this was applied.
func (t Truth) Ended(id cluster.AllocID) bool { return t.world.clients.ended[id] }

// Reports is what the leader's drainer says of every node that drains, by node.
func (w *World) Reports() []drainer.Report {
	var reports []drainer.Report
	for n := range w.State().DrainingNodes() {
		if r, draining := w.Explain(n.ID); draining {
			reports = append(reports, r)
		}
	}
	return reports
}
