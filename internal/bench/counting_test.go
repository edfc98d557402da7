package main

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// rowCounter is a state that counts the rows that are read from its views.
type rowCounter struct {
	drainer.StateReader
	rows int
}

func (c *rowCounter) Snapshot() rules.View {
	return &countingView{view: c.StateReader.Snapshot(), rows: &c.rows}
}

// viewCounter is a state that counts the views that it returns.
type viewCounter struct {
	drainer.StateReader
	count int
}

func (l *viewCounter) Snapshot() rules.View {
	l.count++
	return l.StateReader.Snapshot()
}

// countingView is a view of a rowCounter. It embeds no view, so that it counts every read.
type countingView struct {
	view rules.View
	rows *int
}

// Index reads no row.
func (v *countingView) Index() uint64 { return v.view.Index() }

func (v *countingView) Consumers(id cluster.NodeID) int {
	*v.rows++
	return v.view.Consumers(id)
}

func (v *countingView) Unconfirmed(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return counted(v, v.view.Unconfirmed(id))
}

func (v *countingView) KeptData(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return counted(v, v.view.KeptData(id))
}

func (v *countingView) Node(id cluster.NodeID) *cluster.Node {
	*v.rows++
	return v.view.Node(id)
}

func (v *countingView) Job(k cluster.JobKey) *cluster.Job {
	*v.rows++
	return v.view.Job(k)
}

func (v *countingView) Alloc(id cluster.AllocID) *cluster.Allocation {
	*v.rows++
	return v.view.Alloc(id)
}

func (v *countingView) DrainingNodes() iter.Seq[*cluster.Node] {
	return counted(v, v.view.DrainingNodes())
}

func (v *countingView) NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation] {
	return counted(v, v.view.NodeAllocs(n, s, leaving))
}

func (v *countingView) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return counted(v, v.view.GroupAllocs(g))
}

func (v *countingView) ChangingAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return counted(v, v.view.ChangingAllocs(g))
}

func (v *countingView) Healthy(g cluster.GroupKey) int {
	*v.rows++
	return v.view.Healthy(g)
}

func (v *countingView) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return counted(v, v.view.DrainAllocs(d))
}

func (v *countingView) OpenEvals(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return counted(v, v.view.OpenEvals(k))
}

// counted yields the rows and counts them.
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
