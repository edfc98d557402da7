package timeline

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Standing is how a group stands at last.
type Standing struct{ Healthy, Limit, Count int }

// Standings are the groups that are followed, and how each stands.
func (r *Recorder) Standings() map[cluster.GroupKey]Standing {
	all := make(map[cluster.GroupKey]Standing)
	for key, g := range r.groups {
		l := g.levels[len(g.levels)-1]
		all[key] = Standing{l.healthy, l.limit, l.count}
	}
	return all
}

// Left is how many allocations each node that was drained has left to go.
func (r *Recorder) Left() map[cluster.NodeID]int {
	all := make(map[cluster.NodeID]int)
	for id, n := range r.nodes {
		all[id] = n.nowLeft()
	}
	return all
}

// Phases are the phases of the allocations that have a row.
func (r *Recorder) Phases() map[cluster.AllocID]Phase {
	all := make(map[cluster.AllocID]Phase)
	for id, w := range r.rows {
		all[id] = w.phase()
	}
	return all
}

// Outcomes are how the last drain of each node ended.
func (r *Recorder) Outcomes() map[cluster.NodeID]cluster.Outcome {
	all := make(map[cluster.NodeID]cluster.Outcome)
	for id, n := range r.nodes {
		all[id] = n.last().outcome
	}
	return all
}

// Shown are the nodes that have a lane.
func (r *Recorder) Shown() []cluster.NodeID {
	var ids []cluster.NodeID
	nodes, _ := r.shownNodes()
	for _, n := range nodes {
		ids = append(ids, n.id)
	}
	return ids
}

// Scale is a scale, for tests.
type Scale struct{ scale }

// NewScale returns one.
func NewScale(end time.Duration, width int, times []time.Duration, columns int) Scale {
	return Scale{newScale(end, width, times, columns)}
}

// X is where a time is, Column the column it falls into.
func (s Scale) X(at time.Duration) int        { return s.x(at) }
func (s Scale) Column(at time.Duration) int   { return s.column(at) }
func (s Scale) Ticks(gap int) []time.Duration { return s.ticks(gap) }

// Breaks are the times that are not to scale, from and to.
func (s Scale) Breaks() (breaks [][2]time.Duration) {
	for _, b := range s.breaks {
		breaks = append(breaks, [2]time.Duration{b.from, b.to})
	}
	return breaks
}

// What is tested on its own.
var (
	Natural = natural
	Brief   = brief
	About   = about
)
