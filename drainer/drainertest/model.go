package drainertest

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// model is a state that looks at everything for every answer. The rows are never
// written to.
type model struct {
	index  uint64
	nodes  map[cluster.NodeID]*cluster.Node
	jobs   map[cluster.JobKey]*cluster.Job
	allocs map[cluster.AllocID]*cluster.Allocation
	evals  map[cluster.EvalID]*cluster.Evaluation
}

var _ drainer.View = (*model)(nil)

func (m *model) Index() uint64                                { return m.index }
func (m *model) Node(id cluster.NodeID) *cluster.Node         { return m.nodes[id] }
func (m *model) Job(key cluster.JobKey) *cluster.Job          { return m.jobs[key] }
func (m *model) Alloc(id cluster.AllocID) *cluster.Allocation { return m.allocs[id] }
func (m *model) DrainingNodes() iter.Seq[*cluster.Node] {
	return chosen(m.nodes, (*cluster.Node).Draining, byID)
}
func byID(a, b *cluster.Node) int            { return a.ID.Compare(b.ID) }
func byAllocID(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) }

func (m *model) NodeAllocs(n cluster.NodeID, s cluster.Stage, asked bool) iter.Seq[*cluster.Allocation] {
	return chosen(m.allocs, func(a *cluster.Allocation) bool {
		return a.NodeID == n && a.Stage() == s && a.Asked() == asked && !a.ClientTerminal()
	}, byAllocID)
}

func (m *model) Consumers(n cluster.NodeID) int {
	count := 0
	for _, a := range m.allocs {
		if a.NodeID == n && a.Stage() == cluster.StageConsumers && !a.ClientTerminal() {
			count++
		}
	}
	return count
}

func (m *model) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return chosen(m.allocs, func(a *cluster.Allocation) bool {
		waits := a.Canary() && a.MarkedBy(a.DesiredTransition.Drain) && a.NextAllocation == ""
		return a.GroupKey() == g && (!a.ClientTerminal() || waits)
	}, byAllocID)
}

func (m *model) RestlessAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	rows := slices.DeleteFunc(slices.Collect(m.GroupAllocs(g)), func(a *cluster.Allocation) bool {
		return a.AtRest() && !m.nodes[a.NodeID].Draining()
	})
	slices.SortStableFunc(rows, func(a, b *cluster.Allocation) int { return cmp.Compare(a.Unrest(), b.Unrest()) })
	return slices.Values(rows)
}

func (m *model) Healthy(g cluster.GroupKey) int {
	count := 0
	for _, a := range m.allocs {
		if a.GroupKey() == g && a.Healthy(m.nodes[a.NodeID]) {
			count++
		}
	}
	return count
}

func (m *model) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return chosen(m.allocs, func(a *cluster.Allocation) bool { return a.MarkedBy(d) }, byAllocID)
}

func (m *model) OpenEvals(key cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return chosen(m.evals, func(e *cluster.Evaluation) bool { return e.JobKey() == key && e.Open() },
		func(a, b *cluster.Evaluation) int {
			return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
		})
}

// chosen yields the rows that a condition holds for, in an order.
func chosen[K comparable, T any](rows map[K]*T, which func(*T) bool, order func(a, b *T) int) iter.Seq[*T] {
	all := slices.SortedFunc(maps.Values(rows), order)
	return slices.Values(slices.DeleteFunc(all, func(row *T) bool { return !which(row) }))
}

// compare says in what a view answers otherwise than the model.
func (m *model) compare(v drainer.View) error {
	if v.Index() != m.index {
		return fmt.Errorf("Index is %d, not %d", v.Index(), m.index)
	}
	if err := differ("DrainingNodes", v.DrainingNodes(), m.DrainingNodes()); err != nil {
		return err
	}
	for _, id := range append(slices.Clone(nodeIDs), "none") {
		if err := m.compareNode(v, id); err != nil {
			return err
		}
	}
	for _, key := range append(slices.Clone(jobKeys), cluster.JobKey{Namespace: "ab", ID: "web2"}) {
		if err := m.compareJob(v, key); err != nil {
			return err
		}
	}
	for _, id := range append(slices.Clone(allocIDs), "none") {
		if got, want := v.Alloc(id), m.Alloc(id); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("Alloc(%s) is %+v, not %+v", id, got, want)
		}
	}
	return nil
}

func (m *model) compareNode(v drainer.View, id cluster.NodeID) error {
	if got, want := v.Node(id), m.Node(id); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("Node(%s) is %+v, not %+v", id, got, want)
	}
	if got, want := v.Consumers(id), m.Consumers(id); got != want {
		return fmt.Errorf("Consumers(%s) is %d, not %d", id, got, want)
	}
	for _, stage := range cluster.Stages() {
		for _, asked := range [...]bool{false, true} {
			what := fmt.Sprintf("NodeAllocs(%s, %s, %t)", id, stage, asked)
			if err := differ(what, v.NodeAllocs(id, stage, asked), m.NodeAllocs(id, stage, asked)); err != nil {
				return err
			}
		}
	}
	return differ(fmt.Sprintf("DrainAllocs(%s)", drainOf(id)), v.DrainAllocs(drainOf(id)), m.DrainAllocs(drainOf(id)))
}

func (m *model) compareJob(v drainer.View, key cluster.JobKey) error {
	if got, want := v.Job(key), m.Job(key); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("Job(%s) is %+v, not %+v", key, got, want)
	}
	for _, name := range append(slices.Clone(groups), "none") {
		g := cluster.GroupKey{Job: key, Name: name}
		if err := differ(fmt.Sprintf("GroupAllocs(%s)", g), v.GroupAllocs(g), m.GroupAllocs(g)); err != nil {
			return err
		}
		if err := differ(fmt.Sprintf("RestlessAllocs(%s)", g), bare(v.RestlessAllocs(g)), bare(m.RestlessAllocs(g))); err != nil {
			return err
		}
		if got, want := v.Healthy(g), m.Healthy(g); got != want {
			return fmt.Errorf("Healthy(%s) is %d, not %d", g, got, want)
		}
	}
	return differ(fmt.Sprintf("OpenEvals(%s)", key), v.OpenEvals(key), m.OpenEvals(key))
}

// bare leaves out what a view may leave out.
func bare(allocs iter.Seq[*cluster.Allocation]) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for a := range allocs {
			if !yield(a.Bare()) {
				return
			}
		}
	}
}

// differ says in what two sequences differ. It walks the first twice, and once
// gives up after the first row, as callers do.
func differ[T any](what string, got, want iter.Seq[*T]) error {
	for range got {
		break
	}
	wanted := slices.Collect(want)
	for range 2 {
		if rows := slices.Collect(got); len(rows)+len(wanted) > 0 && !reflect.DeepEqual(rows, wanted) {
			return fmt.Errorf("%s yields %v, not %v", what, idsOf(rows), idsOf(wanted))
		}
	}
	return nil
}

// idsOf are the ids of rows, for people.
func idsOf[T any](rows []*T) []string {
	ids := make([]string, len(rows))
	for i, row := range rows {
		switch row := any(row).(type) {
		case *cluster.Node:
			ids[i] = string(row.ID)
		case *cluster.Allocation:
			ids[i] = string(row.ID)
		case *cluster.Evaluation:
			ids[i] = string(row.ID)
		}
	}
	return ids
}

// mustTell is what a feed has to tell of a commit at least.
func mustTell(before, after *model, rows Rows, follows map[cluster.JobKey]int) drainer.Changes {
	var c drainer.Changes
	drains := func(id cluster.NodeID) bool { return before.Node(id).Draining() || after.Node(id).Draining() }
	for _, id := range append(slices.Clone(rows.DeletedNodes), idOfNodes(rows.Nodes)...) {
		if drains(id) {
			c.Nodes = append(c.Nodes, id)
		}
		was, is := before.Node(id), after.Node(id)
		if was != nil && is != nil && was.Reachable() == is.Reachable() {
			continue
		}
		for _, a := range after.allocs {
			if a.NodeID == id && !a.ClientTerminal() && follows[a.JobKey()] > 0 {
				c.Groups = append(c.Groups, drainer.Told[cluster.GroupKey]{Key: a.GroupKey(), At: after.index})
			}
		}
	}
	changed := slices.Clone(rows.DeletedAllocs)
	for _, a := range rows.Allocs {
		changed = append(changed, a.ID)
	}
	for _, id := range changed {
		for _, a := range []*cluster.Allocation{before.Alloc(id), after.Alloc(id)} {
			if a == nil {
				continue
			}
			if drains(a.NodeID) {
				c.Hosts = append(c.Hosts, a.NodeID)
			}
			if drains(a.NodeID) || follows[a.JobKey()] > 0 {
				c.Groups = append(c.Groups, drainer.Told[cluster.GroupKey]{Key: a.GroupKey(), At: after.index})
			}
		}
	}
	for _, key := range changedJobs(before, rows) {
		if follows[key] > 0 {
			c.Jobs = append(c.Jobs, drainer.Told[cluster.JobKey]{Key: key, At: after.index})
		}
	}
	return c
}

func idOfNodes(nodes []*cluster.Node) []cluster.NodeID {
	ids := make([]cluster.NodeID, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID
	}
	return ids
}

// changedJobs are the jobs that changed, or of which an evaluation did.
func changedJobs(before *model, rows Rows) []cluster.JobKey {
	keys := slices.Clone(rows.DeletedJobs)
	for _, j := range rows.Jobs {
		keys = append(keys, j.Key())
	}
	for _, e := range rows.Evals {
		keys = append(keys, e.JobKey())
	}
	for _, id := range rows.DeletedEvals {
		keys = append(keys, before.evals[id].JobKey())
	}
	return keys
}
