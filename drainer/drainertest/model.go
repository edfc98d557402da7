package drainertest

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// model is a state that reads everything for every answer. Its rows never change.
type model struct {
	index  uint64
	nodes  map[cluster.NodeID]*cluster.Node
	jobs   map[cluster.JobKey]*cluster.Job
	allocs map[cluster.AllocID]*cluster.Allocation
	evals  map[cluster.EvalID]*cluster.Evaluation
	// beside means that a scheduler places replacements beside the allocations that they replace.
	beside bool
}

var (
	_ rules.View      = (*model)(nil)
	_ rules.SurgeView = (*model)(nil)
)

func (m *model) Index() uint64                                { return m.index }
func (m *model) Node(id cluster.NodeID) *cluster.Node         { return m.nodes[id] }
func (m *model) Job(key cluster.JobKey) *cluster.Job          { return m.jobs[key] }
func (m *model) Alloc(id cluster.AllocID) *cluster.Allocation { return m.allocs[id] }
func (m *model) PlacesBeside() bool                           { return m.beside }
func (m *model) DrainingNodes() iter.Seq[*cluster.Node] {
	return chosen(m.nodes, (*cluster.Node).Draining, byID)
}
func byID(a, b *cluster.Node) int            { return a.ID.Compare(b.ID) }
func byAllocID(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) }

func (m *model) NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation] {
	return chosen(m.allocs, func(a *cluster.Allocation) bool {
		return a.NodeID == n && a.Stage() == s && a.Leaving() == leaving && !a.ClientTerminal()
	}, byAllocID)
}

func (m *model) Unconfirmed(n cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return chosen(m.allocs, func(a *cluster.Allocation) bool { return a.NodeID == n && a.Unconfirmed() }, byAllocID)
}

func (m *model) KeptData(n cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return chosen(m.allocs, func(a *cluster.Allocation) bool { return a.NodeID == n && cluster.KeepsData(a) }, byAllocID)
}

func (m *model) Consumers(n cluster.NodeID) int {
	count := 0
	//lint:order a count
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

func (m *model) ChangingAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	rows := slices.DeleteFunc(slices.Collect(m.GroupAllocs(g)), func(a *cluster.Allocation) bool {
		return a.Stable() && !m.nodes[a.NodeID].Draining()
	})
	slices.SortStableFunc(rows, func(a, b *cluster.Allocation) int { return cmp.Compare(a.Progress(), b.Progress()) })
	return slices.Values(rows)
}

func (m *model) Healthy(g cluster.GroupKey) int {
	count := 0
	//lint:order a count
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

// chosen yields the rows that satisfy a condition, in an order.
func chosen[K comparable, T any](rows map[K]*T, which func(*T) bool, order func(a, b *T) int) iter.Seq[*T] {
	all := slices.SortedFunc(maps.Values(rows), order)
	return slices.Values(slices.DeleteFunc(all, func(row *T) bool { return !which(row) }))
}

// compare returns the answer, row and field in which a view differs from the model. It compares
// rows first, so that a lost field is named before the lists that it affects.
func (m *model) compare(v rules.View) error {
	if v.Index() != m.index {
		return fmt.Errorf("Index is %d, want %d", v.Index(), m.index)
	}
	for _, id := range append(slices.Clone(nodeIDs), "none") {
		if d := diffRow(v.Node(id), m.Node(id)); d != "" {
			return fmt.Errorf("Node(%s): %s", id, d)
		}
	}
	for _, key := range append(slices.Clone(jobKeys), cluster.JobKey{Namespace: "ab", ID: "web2"}) {
		if d := diffRow(v.Job(key), m.Job(key)); d != "" {
			return fmt.Errorf("Job(%s): %s", key, d)
		}
	}
	for _, id := range append(slices.Clone(allocIDs), "none") {
		if d := diffRow(v.Alloc(id), m.Alloc(id)); d != "" {
			return fmt.Errorf("Alloc(%s): %s", id, d)
		}
	}
	if err := differ("DrainingNodes()", v.DrainingNodes(), m.DrainingNodes()); err != nil {
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
	return nil
}

func (m *model) compareNode(v rules.View, id cluster.NodeID) error {
	if got, want := v.Consumers(id), m.Consumers(id); got != want {
		return fmt.Errorf("Consumers(%s) is %d, want %d", id, got, want)
	}
	if err := differ(fmt.Sprintf("Unconfirmed(%s)", id), v.Unconfirmed(id), m.Unconfirmed(id)); err != nil {
		return err
	}
	if err := differ(fmt.Sprintf("KeptData(%s)", id), v.KeptData(id), m.KeptData(id)); err != nil {
		return err
	}
	for _, stage := range cluster.Stages() {
		for _, leaving := range [...]bool{false, true} {
			call := fmt.Sprintf("NodeAllocs(%s, %s, %t)", id, stage, leaving)
			if err := differ(call, v.NodeAllocs(id, stage, leaving), m.NodeAllocs(id, stage, leaving)); err != nil {
				return err
			}
		}
	}
	return differ(fmt.Sprintf("DrainAllocs(%s)", drainOf(id)), v.DrainAllocs(drainOf(id)), m.DrainAllocs(drainOf(id)))
}

func (m *model) compareJob(v rules.View, key cluster.JobKey) error {
	for _, name := range append(slices.Clone(groups), "none") {
		g := cluster.GroupKey{Job: key, Name: name}
		if err := differ(fmt.Sprintf("GroupAllocs(%s)", g), v.GroupAllocs(g), m.GroupAllocs(g)); err != nil {
			return err
		}
		if err := differ(fmt.Sprintf("ChangingAllocs(%s)", g), v.ChangingAllocs(g), m.ChangingAllocs(g), (*cluster.Allocation).Bare); err != nil {
			return err
		}
		if got, want := v.Healthy(g), m.Healthy(g); got != want {
			return fmt.Errorf("Healthy(%s) is %d, want %d", g, got, want)
		}
	}
	return differ(fmt.Sprintf("OpenEvals(%s)", key), v.OpenEvals(key), m.OpenEvals(key))
}

// differ returns how two sequences differ. It iterates over got three times. The first time it
// stops after the first row, as callers do.
func differ[T row](call string, got, want iter.Seq[*T], strip ...func(*T) *T) error {
	for range got {
		break
	}
	wanted := slices.Collect(want)
	for range 2 {
		rows := slices.Collect(got)
		same := func(a, b *T) bool { return a == b || nameOf(a) == nameOf(b) }
		if !slices.EqualFunc(rows, wanted, same) {
			return fmt.Errorf("%s: yields [%s], want [%s]", call, namesOf(rows), namesOf(wanted))
		}
		for i, r := range rows {
			w := wanted[i]
			if r == w {
				continue
			}
			for _, f := range strip {
				r, w = f(r), f(w)
			}
			if d := diffRow(r, w); d != "" {
				return fmt.Errorf("%s: %s", call, d)
			}
		}
	}
	return nil
}

// namesOf are the kinds and ids of rows.
func namesOf[T row](rows []*T) string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = nameOf(r)
	}
	return strings.Join(names, ", ")
}

// mustName returns the changes that a feed must name for a commit.
func mustName(before, after *model, rows Rows, follows map[cluster.JobKey]int) drainer.Changes {
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
				c.Groups = append(c.Groups, a.GroupKey())
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
				c.Groups = append(c.Groups, a.GroupKey())
			}
		}
	}
	for _, key := range changedJobs(before, rows) {
		if follows[key] > 0 {
			c.Jobs = append(c.Jobs, key)
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

// changedJobs are the jobs that changed, or whose evaluations did.
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
