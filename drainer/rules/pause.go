package rules

import (
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// paused reports whether the drain of a draining node is paused, by its own pause or by the pause of all.
func paused(s *Planner, n *cluster.Node) bool { return !pausedSince(s, n).IsZero() }

// pausedSince returns since when the drain of a draining node is paused without a break, or zero.
func pausedSince(s *Planner, n *cluster.Node) time.Time {
	if !s.pauseRead {
		s.pauseRead = true
		if v, has := s.view.(PauseView); has {
			s.pauseOfAll = v.DrainPause()
		}
	}
	return n.Drain.PausedSince(s.pauseOfAll)
}

// passed reports whether the drain of a draining node is forced, or its deadline has come. The deadline of a paused
// drain does not come: it moves when the drain is resumed.
func passed(s *Planner, n *cluster.Node) bool { return n.Drain.Strategy.Passed(s.now) && !paused(s, n) }

// pauseText describes what pauses the drain of a node.
func pauseText(s *Planner, n *cluster.Node) string {
	by := func(p *cluster.DrainPause) string {
		if p.By == "" {
			return ""
		}
		return " by " + p.By
	}
	var parts []string
	if n.Drain.Paused != nil {
		parts = append(parts, "its drain is paused"+by(n.Drain.Paused))
	}
	if s.pauseOfAll.Holds(n.Drain) {
		parts = append(parts, "all drains are paused"+by(s.pauseOfAll))
	}
	return strings.Join(parts, ", and ")
}
