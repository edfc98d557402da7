package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// names are the rows that an entry may have written. They follow from the entry
// and the state before it, but for the evaluations that its change called for,
// which its response names, and are the same on every server. Whether it names those
// that there have to be is for [Judge.judgeEvals].
type names struct {
	nodes   []cluster.NodeID
	jobs    []cluster.JobKey
	allocs  []cluster.AllocID
	evals   []cluster.EvalID
	records []cluster.DrainID
}

// collect names what the entry may have written, each once and in order. It
// reuses what the names hold.
func (t *names) collect(a shims.Applied) {
	t.nodes, t.jobs, t.allocs, t.evals, t.records = t.nodes[:0], t.jobs[:0], t.allocs[:0], t.evals[:0], t.records[:0]
	switch m := a.Message.(type) {
	case nil: // skipped
	case *shims.NodeRegister:
		t.nodes = append(t.nodes, m.Node.ID)
		t.addEvals(m.Evals...)
	case *shims.NodeDeregister:
		for _, id := range m.Nodes {
			t.addEnd(a.Before, id)
		}
		t.addEvals(m.Evals...)
	case *shims.NodeUpdateStatus:
		t.nodes = append(t.nodes, m.Node)
		t.addEvals(m.Evals...)
	case *shims.NodeUpdateEligibility:
		t.nodes = append(t.nodes, m.Node)
		t.addEvals(m.Evals...)
	case *shims.NodeUpdateDrain:
		t.addRequest(a.Before, m)
	case *shims.JobRegister:
		t.jobs = append(t.jobs, registeredKey(m.Job))
		t.addEvals(m.Evals...)
	case *shims.JobDeregister:
		t.addDeregistration(a.Before, m)
	case *shims.EvalUpdate:
		t.addEvals(m.Evals...)
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			t.allocs = append(t.allocs, r.Alloc)
		}
		t.addEvals(m.Evals...)
	case *shims.ApplyPlan:
		t.addPlan(&m.Plan)
	case *shims.AllocUpdateDesiredTransition:
		for _, mark := range m.Marks.Marks {
			t.allocs = append(t.allocs, mark.Alloc)
			t.nodes = append(t.nodes, mark.Node)
		}
		t.addEvals(m.Evals...)
	case *shims.NodesDrainComplete:
		for _, c := range m.Completions.Completions {
			t.addEnd(a.Before, c.Node)
		}
	}
	t.evals = append(t.evals, evalsMade(a.Response)...)
	t.sort()
}

// evalsMade are the evaluations that an entry is said to have made, those that it
// carried among them.
func evalsMade(r shims.Response) []cluster.EvalID {
	switch r := r.(type) {
	case shims.ChangeApplied:
		return r.Evals
	case shims.NodesDeregistered:
		return r.Evals
	case shims.DrainRequestApplied:
		return r.Evals
	}
	return nil
}

func (t *names) sort() {
	t.nodes, t.allocs = sorted(t.nodes), sorted(t.allocs)
	t.evals, t.records = sorted(t.evals), sorted(t.records)
}

// sorted sorts the ids in place, and returns them each once.
func sorted[T cmp.Ordered](ids []T) []T {
	if len(ids) > 1 {
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	return ids
}

func (t *names) addEvals(evals ...*cluster.Evaluation) {
	for _, e := range evals {
		if e != nil {
			t.evals = append(t.evals, e.ID)
		}
	}
}

// addEnd names what the end of a node's drain writes: the node, the drain's record,
// and the records that have to make room for it.
func (t *names) addEnd(before *statestore.Snapshot, id cluster.NodeID) {
	t.nodes = append(t.nodes, id)
	n := before.Node(id)
	if n == nil || n.Drain == nil {
		return
	}
	t.records = append(t.records, n.Drain.ID)
	for d := range before.DrainsByNode(id) {
		t.records = append(t.records, d.ID)
		break
	}
	for d := range before.Drains() {
		t.records = append(t.records, d.ID)
		break
	}
}

// addRequest names what a request about a drain writes.
func (t *names) addRequest(before *statestore.Snapshot, m *shims.NodeUpdateDrain) {
	t.nodes = append(t.nodes, m.Node)
	t.addEvals(m.Evals...)
	if m.Spec != nil {
		return
	}
	t.addEnd(before, m.Node)
	for a := range before.LiveAllocsByNode(m.Node) { // any drain may have marked them
		t.allocs = append(t.allocs, a.ID)
	}
}

// addDeregistration names what the end of a job writes: a purge everything of it,
// and the account of what still ran.
func (t *names) addDeregistration(before *statestore.Snapshot, m *shims.JobDeregister) {
	t.jobs = append(t.jobs, m.Job)
	t.addEvals(m.Evals...)
	if !m.Purge {
		return
	}
	for a := range before.AllocsByJob(m.Job) {
		t.allocs = append(t.allocs, a.ID)
		t.nodes = append(t.nodes, a.NodeID)
	}
	for e := range before.EvalsByJob(m.Job) {
		t.evals = append(t.evals, e.ID)
	}
}

func (t *names) addPlan(p *cluster.Plan) {
	for _, s := range p.Stops {
		t.allocs = append(t.allocs, s.Alloc)
	}
	for _, a := range p.Places {
		if a == nil {
			continue
		}
		t.allocs = append(t.allocs, a.ID)
		if a.PreviousAllocation != "" {
			t.allocs = append(t.allocs, a.PreviousAllocation)
		}
	}
	t.addEvals(p.Eval, p.Blocked)
	t.addEvals(p.Answers...)
}

// registeredKey is the key under which a job is registered that may name no
// namespace.
func registeredKey(j *cluster.Job) cluster.JobKey {
	k := keyOf(j)
	if k.Namespace == "" {
		k.Namespace = cluster.DefaultNamespace
	}
	return k
}

// change is one row before and after an entry; nil where there was or is none.
type change[T any] struct{ before, after *T }

// entry is one applied entry with the rows that it has written.
type entry struct {
	shims.Applied
	// at is the proposer's time, or zero if the entry has none.
	at    time.Time
	names names
	// The changes are in the order of the names.
	nodes   []change[cluster.Node]
	jobs    []change[cluster.Job]
	allocs  []change[cluster.Allocation]
	evals   []change[cluster.Evaluation]
	records []change[cluster.Drain]
}

// read takes in an applied entry: what it was before is in the tables, what it is
// now in the state after it. Rows that are the very same have not changed.
func (e *entry) read(b *tables, a shims.Applied) {
	e.Applied, e.at = a, timeOf(a.Message)
	e.names.collect(a)
	e.nodes, e.jobs, e.allocs, e.evals, e.records = e.nodes[:0], e.jobs[:0], e.allocs[:0], e.evals[:0], e.records[:0]
	for _, id := range e.names.nodes {
		var before *cluster.Node
		if n := b.nodes[id]; n != nil {
			before = n.row
		}
		if after := a.After.Node(id); after != before {
			e.nodes = append(e.nodes, change[cluster.Node]{before, after})
		}
	}
	for _, key := range e.names.jobs {
		before, after := b.job(key).row, a.After.Job(key)
		if after != before {
			e.jobs = append(e.jobs, change[cluster.Job]{before, after})
		}
	}
	for _, id := range e.names.allocs {
		var before *cluster.Allocation
		if known := b.allocs[id]; known != nil {
			before = known.row
		}
		if after := a.After.Alloc(id); after != before {
			e.allocs = append(e.allocs, change[cluster.Allocation]{before, after})
		}
	}
	for _, id := range e.names.evals {
		if before, after := b.evals[id], a.After.Eval(id); after != before {
			e.evals = append(e.evals, change[cluster.Evaluation]{before, after})
		}
	}
	for _, id := range e.names.records {
		if before, after := b.records[id], a.After.DrainRecord(id); after != before {
			e.records = append(e.records, change[cluster.Drain]{before, after})
		}
	}
}

// timeOf is the proposer's time of a message, or zero.
func timeOf(m shims.Message) time.Time {
	switch m := m.(type) {
	case *shims.NodeRegister:
		return m.At
	case *shims.NodeDeregister:
		return m.At
	case *shims.NodeUpdateStatus:
		return m.At
	case *shims.NodeUpdateEligibility:
		return m.At
	case *shims.NodeUpdateDrain:
		return m.At
	case *shims.ApplyPlan:
		return m.At
	case *shims.AllocUpdateDesiredTransition:
		return m.At
	case *shims.NodesDrainComplete:
		return m.At
	}
	return time.Time{}
}

// put writes the entry's rows into the tables.
func (e *entry) put(b *tables) {
	for _, c := range e.nodes {
		b.putNode(either(c).ID, c.after)
	}
	for _, c := range e.jobs {
		b.putJob(keyOf(either(c)), c.after)
	}
	for _, c := range e.allocs {
		b.putAlloc(either(c).ID, c.after)
	}
	for _, c := range e.evals {
		b.putEval(either(c).ID, c.after)
	}
	for _, c := range e.records {
		b.putRecord(either(c).ID, c.after)
	}
	b.index = e.Index
}

// either is the row after the entry, or before it if it is gone.
func either[T any](c change[T]) *T {
	if c.after != nil {
		return c.after
	}
	return c.before
}
