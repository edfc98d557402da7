package main

import (
	"cmp"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// pauseDrains applies an operator's request to pause or to resume the drain of a node, or all drains.
// A repeated request changes nothing.
func (s *state) pauseDrains(u cluster.DrainPauseUpdate) {
	n, all := s.nodes[u.Node], s.pause
	switch {
	case u.Node == "" && u.Pause:
		s.pause = cmp.Or(all, &cluster.DrainPause{At: u.At, By: u.By})
	case u.Node == "" && all != nil:
		s.pause = nil
		for held := range s.view.DrainingNodes() {
			if all.Holds(held.Drain) && held.Drain.Paused == nil {
				s.resume(held, all, u)
			}
		}
	case n == nil || !n.Draining():
	case u.Pause:
		if paused := lifecycle.PauseDrain(n, all, u, s.index); paused != nil {
			s.nodes[n.ID] = paused
		}
	case n.Drain.Paused != nil && !all.Holds(n.Drain):
		s.resume(n, all, u)
	}
}

// resume ends the pause of a drain. all is the pause of all drains before the request, or nil.
func (s *state) resume(n *cluster.Node, all *cluster.DrainPause, u cluster.DrainPauseUpdate) {
	s.nodes[n.ID] = lifecycle.ResumeDrain(n, n.Drain.PausedSince(all), u.At, s.index)
}
