package rowview

import (
	"cmp"
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// View is one state. It never changes and is safe for concurrent use.
type View struct {
	index     uint64
	rows      rows
	nodes     map[cluster.NodeID]*cluster.Node
	draining  []*cluster.Node
	jobs      map[cluster.JobKey]*cluster.Job
	allocs    map[cluster.AllocID]*cluster.Allocation
	onNode    map[place][]*cluster.Allocation
	consumers map[cluster.NodeID]int
	// unconfirmed holds lost allocations.
	unconfirmed map[cluster.NodeID][]*cluster.Allocation
	keptData    map[cluster.NodeID][]*cluster.Allocation
	inGroup     map[cluster.GroupKey][]*cluster.Allocation
	changing    map[cluster.GroupKey][]*cluster.Allocation
	healthy     map[cluster.GroupKey]int
	marked      map[cluster.DrainID][]*cluster.Allocation
	evals       map[cluster.JobKey][]*cluster.Evaluation
	// pauseOfAll is the pause of all drains, or nil.
	pauseOfAll *cluster.DrainPause
	// beside means that the scheduler places replacements beside the allocations that they replace.
	beside bool
}

// place is one of the lists of a node's allocations.
type place struct {
	node    cluster.NodeID
	stage   cluster.Stage
	leaving bool
}

var (
	_ rules.View      = (*View)(nil)
	_ rules.PauseView = (*View)(nil)
	_ rules.SurgeView = (*View)(nil)
)

// New returns the view of a state: all rows as they are after the entry of the index. The rows may
// be in any order. They belong to the view: the caller must not change the rows or the slices after
// the call. New sorts all rows. After that the cost of every method depends on what it returns.
func New(index uint64, nodes []*cluster.Node, jobs []*cluster.Job, allocs []*cluster.Allocation, evals []*cluster.Evaluation) *View {
	v := &View{
		index: index,
		nodes: make(map[cluster.NodeID]*cluster.Node, len(nodes)), jobs: make(map[cluster.JobKey]*cluster.Job, len(jobs)),
		allocs: make(map[cluster.AllocID]*cluster.Allocation, len(allocs)), onNode: map[place][]*cluster.Allocation{},
		consumers: map[cluster.NodeID]int{}, unconfirmed: map[cluster.NodeID][]*cluster.Allocation{},
		keptData: map[cluster.NodeID][]*cluster.Allocation{}, inGroup: map[cluster.GroupKey][]*cluster.Allocation{},
		changing: map[cluster.GroupKey][]*cluster.Allocation{}, healthy: map[cluster.GroupKey]int{},
		marked: map[cluster.DrainID][]*cluster.Allocation{}, evals: map[cluster.JobKey][]*cluster.Evaluation{},
	}
	v.rows = rows{
		nodes:  sorted(nodes, func(a, b *cluster.Node) int { return a.ID.Compare(b.ID) }),
		jobs:   jobs,
		allocs: sorted(allocs, func(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) }),
		evals:  sorted(evals, compareEvals),
	}
	for _, n := range v.rows.nodes {
		v.nodes[n.ID] = n
		if n.Draining() {
			v.draining = append(v.draining, n)
		}
	}
	for _, j := range jobs {
		v.jobs[j.Key()] = j
	}
	for _, a := range v.rows.allocs {
		v.add(a)
	}
	for _, e := range v.rows.evals {
		if e.Open() {
			v.evals[e.JobKey()] = append(v.evals[e.JobKey()], e)
		}
	}
	for _, group := range v.changing { //lint:order each group by itself
		slices.SortStableFunc(group, func(a, b *cluster.Allocation) int { return cmp.Compare(a.Progress(), b.Progress()) })
	}
	return v
}

// WithPause returns the view of the same state with a pause of all drains, or without one if all is nil. The views
// share everything else.
func (v *View) WithPause(all *cluster.DrainPause) *View {
	paused := *v
	paused.pauseOfAll = all
	return &paused
}

// WithStandbys returns the view of the same state with a scheduler that places replacements beside the allocations that
// they replace. Without it max_surge has no effect. The views share everything else.
func (v *View) WithStandbys() *View {
	surging := *v
	surging.beside = true
	return &surging
}

func sorted[T any](rows []*T, compare func(a, b *T) int) []*T {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, compare)
	return rows
}

func compareEvals(a, b *cluster.Evaluation) int {
	return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
}

// Nodes yields all nodes, by id.
func (v *View) Nodes() iter.Seq[*cluster.Node] { return slices.Values(v.rows.nodes) }

// Jobs yields all jobs, in the order of New.
func (v *View) Jobs() iter.Seq[*cluster.Job] { return slices.Values(v.rows.jobs) }

// Allocs yields all allocations, by id.
func (v *View) Allocs() iter.Seq[*cluster.Allocation] { return slices.Values(v.rows.allocs) }

// Evals yields all evaluations, by creation index and id.
func (v *View) Evals() iter.Seq[*cluster.Evaluation] { return slices.Values(v.rows.evals) }

// rows are the rows of a view.
type rows struct {
	nodes  []*cluster.Node
	jobs   []*cluster.Job
	allocs []*cluster.Allocation
	evals  []*cluster.Evaluation
}

// add adds an allocation to its lists. Allocations are added in the order of their ids.
func (v *View) add(a *cluster.Allocation) {
	group, node := a.GroupKey(), v.nodes[a.NodeID]
	v.allocs[a.ID] = a
	if a.MarkedBy(a.DesiredTransition.Drain) {
		drain := a.DesiredTransition.Drain
		v.marked[drain] = append(v.marked[drain], a)
	}
	if a.Unconfirmed() {
		v.unconfirmed[a.NodeID] = append(v.unconfirmed[a.NodeID], a)
	}
	if cluster.KeepsData(a) {
		v.keptData[a.NodeID] = append(v.keptData[a.NodeID], a)
	}
	if !a.ClientTerminal() {
		p := place{a.NodeID, a.Stage(), a.Leaving()}
		v.onNode[p] = append(v.onNode[p], a)
		if p.stage == cluster.StageConsumers {
			v.consumers[a.NodeID]++
		}
	} else if !a.Canary() || !a.MarkedBy(a.DesiredTransition.Drain) || a.NextAllocation != "" {
		return
	}
	v.inGroup[group] = append(v.inGroup[group], a)
	if a.Healthy(node) {
		v.healthy[group]++
	}
	if !a.Stable() || node.Draining() {
		v.changing[group] = append(v.changing[group], a)
	}
}

// Index is for [rules.View].
func (v *View) Index() uint64 { return v.index }

// Node is for [rules.View].
func (v *View) Node(id cluster.NodeID) *cluster.Node { return v.nodes[id] }

// DrainingNodes is for [rules.View].
func (v *View) DrainingNodes() iter.Seq[*cluster.Node] { return slices.Values(v.draining) }

// Job is for [rules.View].
func (v *View) Job(key cluster.JobKey) *cluster.Job { return v.jobs[key] }

// Alloc is for [rules.View].
func (v *View) Alloc(id cluster.AllocID) *cluster.Allocation { return v.allocs[id] }

// NodeAllocs is for [rules.View].
func (v *View) NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation] {
	return slices.Values(v.onNode[place{n, s, leaving}])
}

// Unconfirmed is for [rules.View].
func (v *View) Unconfirmed(n cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return slices.Values(v.unconfirmed[n])
}

// KeptData is for [rules.View].
func (v *View) KeptData(n cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return slices.Values(v.keptData[n])
}

// Consumers is for [rules.View].
func (v *View) Consumers(n cluster.NodeID) int { return v.consumers[n] }

// GroupAllocs is for [rules.View].
func (v *View) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return slices.Values(v.inGroup[g])
}

// ChangingAllocs is for [rules.View].
func (v *View) ChangingAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return slices.Values(v.changing[g])
}

// Healthy is for [rules.View].
func (v *View) Healthy(g cluster.GroupKey) int { return v.healthy[g] }

// DrainAllocs is for [rules.View].
func (v *View) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return slices.Values(v.marked[d])
}

// OpenEvals is for [rules.View].
func (v *View) OpenEvals(key cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return slices.Values(v.evals[key])
}

// DrainPause is for [rules.PauseView].
func (v *View) DrainPause() *cluster.DrainPause { return v.pauseOfAll }

// PlacesBeside is for [rules.SurgeView].
func (v *View) PlacesBeside() bool { return v.beside }
