package drainer

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// world is a View without any index: every answer is a look at everything. It is
// the dumb twin of a state store.
type world struct {
	index  uint64
	nodes  []*cluster.Node
	jobs   []*cluster.Job
	allocs []*cluster.Allocation
	evals  []*cluster.Evaluation
}

var _ View = (*world)(nil)

// epoch is the time of tests that need one.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *world) Index() uint64 { return w.index }

func (w *world) Node(id cluster.NodeID) *cluster.Node {
	for _, n := range w.nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

func (w *world) DrainingNodes() iter.Seq[*cluster.Node] {
	return filtered(w.nodes, func(n *cluster.Node) bool { return n.Drain != nil },
		func(a, b *cluster.Node) int { return cmp.Compare(a.ID, b.ID) })
}

func (w *world) Job(key cluster.JobKey) *cluster.Job {
	for _, j := range w.jobs {
		if j.Key() == key {
			return j
		}
	}
	return nil
}

func (w *world) Alloc(id cluster.AllocID) *cluster.Allocation {
	for _, a := range w.allocs {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (w *world) NodeAllocs(n cluster.NodeID, s cluster.Stage, asked bool) iter.Seq[*cluster.Allocation] {
	return filtered(w.allocs, func(a *cluster.Allocation) bool {
		return a.NodeID == n && a.Stage() == s && a.Asked() == asked && !a.ClientTerminal()
	}, byAllocID)
}

func (w *world) Consumers(n cluster.NodeID) int {
	count := 0
	for _, asked := range [...]bool{false, true} {
		for range w.NodeAllocs(n, cluster.StageConsumers, asked) {
			count++
		}
	}
	return count
}

func (w *world) GroupAllocs(key cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return filtered(w.allocs, func(a *cluster.Allocation) bool {
		waits := a.DesiredTransition.Class == cluster.MarkCanary && a.NextAllocation == ""
		return a.GroupKey() == key && (!a.ClientTerminal() || waits)
	}, byAllocID)
}

func (w *world) RestlessAllocs(key cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	var bare []*cluster.Allocation
	for a := range w.GroupAllocs(key) {
		bare = append(bare, a.Bare())
	}
	return filtered(bare, func(a *cluster.Allocation) bool {
		return !a.AtRest() || w.Node(a.NodeID).Draining()
	}, func(a, b *cluster.Allocation) int {
		return cmp.Or(cmp.Compare(a.Unrest(), b.Unrest()), byAllocID(a, b))
	})
}

func (w *world) Healthy(key cluster.GroupKey) int {
	count := 0
	for a := range w.GroupAllocs(key) {
		if a.Healthy(w.Node(a.NodeID)) {
			count++
		}
	}
	return count
}

func (w *world) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return filtered(w.allocs, func(a *cluster.Allocation) bool { return a.DesiredTransition.Drain == d }, byAllocID)
}

func (w *world) OpenEvals(key cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return filtered(w.evals, func(e *cluster.Evaluation) bool { return e.JobKey() == key && e.Open() },
		func(a, b *cluster.Evaluation) int {
			return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
		})
}

func byAllocID(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) }

func filtered[T any](all []T, keep func(T) bool, order func(a, b T) int) iter.Seq[T] {
	var kept []T
	for _, v := range all {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	slices.SortFunc(kept, order)
	return slices.Values(kept)
}

// clone returns a world that shares rows with w, and no table.
func (w *world) clone() *world {
	c := *w
	c.nodes, c.jobs = slices.Clone(w.nodes), slices.Clone(w.jobs)
	c.allocs, c.evals = slices.Clone(w.allocs), slices.Clone(w.evals)
	return &c
}

// mark writes accepted marks into the world, as an FSM would.
func (w *world) mark(marks []Mark, evals []*cluster.Evaluation, at time.Time) {
	w.index++
	for _, m := range marks {
		for i, a := range w.allocs {
			if a.ID == m.Alloc {
				marked := a.Copy()
				marked.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: m.Drain, Class: m.Class, MarkedAt: at}
				w.allocs[i] = marked
			}
		}
	}
	w.evals = append(w.evals, evals...)
}
