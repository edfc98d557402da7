package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// rowIDs are the rows that an entry may have written. They follow from the entry, from its
// response, and from the state before it, so they are the same on every server. The response
// only names the evaluations that the FSM made itself. [Judge.judgeEvals] checks these.
type rowIDs struct {
	nodes   []cluster.NodeID
	jobs    []cluster.JobKey
	allocs  []cluster.AllocID
	evals   []cluster.EvalID
	records []cluster.DrainID
}

// collect finds the rows that the entry may have written, sorted and each once. It reuses the
// memory of t.
func (t *rowIDs) collect(a shims.Applied) {
	t.nodes, t.jobs, t.allocs, t.evals, t.records = t.nodes[:0], t.jobs[:0], t.allocs[:0], t.evals[:0], t.records[:0]
	switch m := a.Message.(type) {
	case nil: // the FSM skipped the entry
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
	case *shims.Collect:
		t.allocs, t.evals = append(t.allocs, m.Allocs...), append(t.evals, m.Evals...)
		for _, key := range m.Jobs {
			t.jobs = append(t.jobs, key)
			for e := range a.Before.EvalsByJob(key) {
				t.evals = append(t.evals, e.ID)
			}
			for alloc := range a.Before.AllocsByJob(key) { // those of a finished batch job are deleted with it
				t.allocs = append(t.allocs, alloc.ID)
			}
		}
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			t.allocs = append(t.allocs, r.Alloc)
		}
		t.addEvals(m.Evals...)
	case *shims.AllocStop:
		t.allocs = append(t.allocs, m.Alloc)
		t.addEvals(m.Evals...)
	case *shims.VolumeDetach: // by force it stops allocations
		for alloc := range a.Before.LiveAllocsByNode(m.Node) {
			t.allocs = append(t.allocs, alloc.ID)
		}
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

// evalsMade returns the evaluations that the response names: those that the entry carried and
// those that the FSM made itself.
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

func (t *rowIDs) sort() {
	t.nodes, t.allocs = sorted(t.nodes), sorted(t.allocs)
	t.evals, t.records = sorted(t.evals), sorted(t.records)
}

// sorted sorts the ids in place and removes duplicates.
func sorted[T cmp.Ordered](ids []T) []T {
	if len(ids) > 1 {
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	return ids
}

func (t *rowIDs) addEvals(evals ...*cluster.Evaluation) {
	for _, e := range evals {
		if e != nil {
			t.evals = append(t.evals, e.ID)
		}
	}
}

// addEnd adds the rows that the end of a node's drain may write: the node, the drain's record,
// and the two oldest records, which the store may delete to make room.
func (t *rowIDs) addEnd(before *statestore.Snapshot, id cluster.NodeID) {
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

// addRequest adds the rows that a request for a drain may write.
func (t *rowIDs) addRequest(before *statestore.Snapshot, m *shims.NodeUpdateDrain) {
	t.nodes = append(t.nodes, m.Node)
	t.addEvals(m.Evals...)
	if m.Spec != nil {
		return
	}
	t.addEnd(before, m.Node)
	for a := range before.LiveAllocsByNode(m.Node) { // a cancel withdraws marks
		t.allocs = append(t.allocs, a.ID)
	}
}

// addDeregistration adds the rows that the end of a job may write. A purge deletes all rows of
// the job, and counts the running allocations in the drains of their nodes.
func (t *rowIDs) addDeregistration(before *statestore.Snapshot, m *shims.JobDeregister) {
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

func (t *rowIDs) addPlan(p *cluster.Plan) {
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

// registeredKey is the key of a job after its registration. An empty namespace becomes the
// default one.
func registeredKey(j *cluster.Job) cluster.JobKey {
	k := keyOf(j)
	if k.Namespace == "" {
		k.Namespace = cluster.DefaultNamespace
	}
	return k
}

// change is one row before and after an entry. Nil is a missing row.
type change[T any] struct{ before, after *T }

// entry is one applied entry with the rows that it changed.
type entry struct {
	shims.Applied
	// at is the proposer's time, or zero if the entry has none.
	at  time.Time
	ids rowIDs
	// The changes are in the order of the ids.
	nodes   []change[cluster.Node]
	jobs    []change[cluster.Job]
	allocs  []change[cluster.Allocation]
	evals   []change[cluster.Evaluation]
	records []change[cluster.Drain]
}

// read finds the rows that an applied entry changed. The tables hold the rows before the
// entry. Equal pointers are unchanged rows.
func (e *entry) read(b *tables, a shims.Applied) {
	e.Applied, e.at = a, timeOf(a.Message)
	e.ids.collect(a)
	e.nodes, e.jobs, e.allocs, e.evals, e.records = e.nodes[:0], e.jobs[:0], e.allocs[:0], e.evals[:0], e.records[:0]
	for _, id := range e.ids.nodes {
		var before *cluster.Node
		if n := b.nodes[id]; n != nil {
			before = n.row
		}
		if after := a.After.Node(id); after != before {
			e.nodes = append(e.nodes, change[cluster.Node]{before, after})
		}
	}
	for _, key := range e.ids.jobs {
		before, after := b.job(key).row, a.After.Job(key)
		if after != before {
			e.jobs = append(e.jobs, change[cluster.Job]{before, after})
		}
	}
	for _, id := range e.ids.allocs {
		var before *cluster.Allocation
		if known := b.allocs[id]; known != nil {
			before = known.row
		}
		if after := a.After.Alloc(id); after != before {
			e.allocs = append(e.allocs, change[cluster.Allocation]{before, after})
		}
	}
	for _, id := range e.ids.evals {
		if before, after := b.evals[id], a.After.Eval(id); after != before {
			e.evals = append(e.evals, change[cluster.Evaluation]{before, after})
		}
	}
	for _, id := range e.ids.records {
		if before, after := b.records[id], a.After.DrainRecord(id); after != before {
			e.records = append(e.records, change[cluster.Drain]{before, after})
		}
	}
}

// timeOf is the proposer's time in a message, or zero.
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
	case *shims.Collect:
		return m.At
	case *shims.AllocStop:
		return m.At
	case *shims.VolumeDetach:
		return m.At
	}
	return time.Time{}
}

// update writes the changed rows into the tables.
func (e *entry) update(b *tables) {
	for _, c := range e.nodes {
		b.putNode(newest(c).ID, c.after)
	}
	for _, c := range e.jobs {
		b.putJob(keyOf(newest(c)), c.after)
	}
	for _, c := range e.allocs {
		b.putAlloc(newest(c).ID, c.after)
	}
	for _, c := range e.evals {
		b.putEval(newest(c).ID, c.after)
	}
	for _, c := range e.records {
		b.putRecord(newest(c).ID, c.after)
	}
	b.index, b.volumes = e.Index, volumes{e.After}
}

// newest is the row after the entry, or the row before it if the entry deleted the row.
func newest[T any](c change[T]) *T {
	if c.after != nil {
		return c.after
	}
	return c.before
}
