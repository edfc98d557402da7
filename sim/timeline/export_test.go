package timeline

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Standing is the last level of a group.
type Standing struct{ Healthy, Limit, Count int }

// Standings are the last levels of the groups with lanes.
func (r *Recorder) Standings() map[cluster.GroupKey]Standing {
	all := make(map[cluster.GroupKey]Standing)
	for key, g := range r.groups {
		l := g.levels[len(g.levels)-1]
		all[key] = Standing{l.healthy, l.limit, l.count}
	}
	return all
}

// Left is the number of allocations left to drain on each drained node.
func (r *Recorder) Left() map[cluster.NodeID]int {
	all := make(map[cluster.NodeID]int)
	for id, n := range r.nodes {
		all[id] = n.nowLeft()
	}
	return all
}

// Phases are the phases of the allocations with rows.
func (r *Recorder) Phases() map[cluster.AllocID]Phase {
	all := make(map[cluster.AllocID]Phase)
	for id, w := range r.rows {
		all[id] = w.phase()
	}
	return all
}

// Outcomes are the outcomes of the last drain of each node.
func (r *Recorder) Outcomes() map[cluster.NodeID]cluster.Outcome {
	all := make(map[cluster.NodeID]cluster.Outcome)
	for id, n := range r.nodes {
		all[id] = n.last().outcome
	}
	return all
}

// Shown are the nodes with lanes.
func (r *Recorder) Shown() []cluster.NodeID {
	var ids []cluster.NodeID
	nodes, _ := r.shownNodes()
	for _, n := range nodes {
		ids = append(ids, n.id)
	}
	return ids
}

// Natural exports natural.
var Natural = natural
