package world

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
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
	return l.sight.held() || w.now.Before(l.established) || l.server.paused(w.now) || l.drains.pending()
}

// Ended reports whether an allocation's client has said that its tasks have ended,
// and was told that this was applied.
func (t Truth) Ended(id cluster.AllocID) bool { return t.world.clients.ended[id] }

// Settled reports whether the leader's drainer has nothing to do, and nothing it
// proposed is under way: what it says now is said at a quiet point.
func (w *World) Settled() bool {
	l := w.leader
	return l.caughtUp && !w.Unseen().Held() &&
		!slices.ContainsFunc(w.log.queue, func(p *proposal) bool { return p.Source == FromDrainer })
}

// Reports is what the leader's drainer says of every node that drains, by node.
func (w *World) Reports() []rules.Report {
	return w.leader.drainer.Reports(w.Clock())
}

// Reader reads the leader's state, as another drainer on its server would.
func (w *World) Reader() drainer.StateReader {
	s := w.sight(w.leader.server)
	s.stale = w.leader.sight.stale
	return s
}

// States are the states of the servers once each has applied the whole log, the
// leader's first. Where servers are views there is one.
func (w *World) States() ([]*statestore.Snapshot, error) {
	leader := w.leader.server.machine
	machines := []*machine{leader}
	for _, s := range w.servers {
		if s.machine != leader {
			machines = append(machines, s.machine)
		}
	}
	states := make([]*statestore.Snapshot, len(machines))
	for i, m := range machines {
		if _, err := m.catchUp(w.log.entries); err != nil {
			return nil, fmt.Errorf("catching up: %w", err)
		}
		states[i] = m.state()
	}
	return states, nil
}
