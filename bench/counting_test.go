package main

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// counting is a state that counts the rows that are read of it.
type counting struct {
	drainer.StateReader
	rows int
}

func (c *counting) Snapshot() drainer.View { return &countingView{c.StateReader.Snapshot(), &c.rows} }

// countingView is one view of such a state.
type countingView struct {
	drainer.View
	rows *int
}

func (v *countingView) Node(id cluster.NodeID) *cluster.Node {
	*v.rows++
	return v.View.Node(id)
}

func (v *countingView) Job(k cluster.JobKey) *cluster.Job {
	*v.rows++
	return v.View.Job(k)
}

func (v *countingView) Alloc(id cluster.AllocID) *cluster.Allocation {
	*v.rows++
	return v.View.Alloc(id)
}

func (v *countingView) DrainingNodes() iter.Seq[*cluster.Node] {
	return counted(v, v.View.DrainingNodes())
}

func (v *countingView) NodeAllocs(n cluster.NodeID, s cluster.Stage, asked bool) iter.Seq[*cluster.Allocation] {
	return counted(v, v.View.NodeAllocs(n, s, asked))
}

func (v *countingView) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return counted(v, v.View.GroupAllocs(g))
}

func (v *countingView) RestlessAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return counted(v, v.View.RestlessAllocs(g))
}

func (v *countingView) Healthy(g cluster.GroupKey) int {
	*v.rows++
	return v.View.Healthy(g)
}

func (v *countingView) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return counted(v, v.View.DrainAllocs(d))
}

func (v *countingView) OpenEvals(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return counted(v, v.View.OpenEvals(k))
}

// counted yields what rows yields, and counts it.
func counted[T any](v *countingView, rows iter.Seq[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for row := range rows {
			*v.rows++
			if !yield(row) {
				return
			}
		}
	}
}
