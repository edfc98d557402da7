package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// rowIDs are the rows that an entry may have written. They follow from the entry, from its
// response, and from the state before it, so they are the same on every server. The response
// only names the evaluations that the FSM created itself. [Judge.judgeEvals] checks these.
type rowIDs struct {
	witness.Touched
	evals   []cluster.EvalID
	records []cluster.DrainID
}

// collect finds the rows that the entry may have written, sorted and each once.
func (t *rowIDs) collect(a shims.Applied, touched witness.Touched) {
	t.Nodes, t.Jobs, t.Allocs = slices.Clone(touched.Nodes), touched.Jobs, slices.Clone(touched.Allocs)
	t.evals, t.records = t.evals[:0], t.records[:0]
	t.addEvals(carriedBy(a.Message)...)
	switch m := a.Message.(type) {
	case *shims.NodeDeregister:
		t.addEnds(a.Before, m.Nodes...)
	case *shims.NodeUpdateDrain:
		if m.Spec == nil {
			t.addEnds(a.Before, m.Node)
		}
	case *shims.NodesDrainComplete:
		t.addEnds(a.Before, t.Nodes...)
	case *shims.AllocClientUpdate:
		t.addCounting(a.Before, confirmedNodes(a.Before, m.Reports)...)
	case *shims.NodeRegister, *shims.ConfirmStops, *shims.ConfirmDrain:
		t.addCounting(a.Before, t.Nodes...)
	case *shims.JobRegister: // allocations get the services of the new version
		for a := range a.Before.AllocsByJob(keyOf(m.Job)) {
			t.Allocs = append(t.Allocs, a.ID)
		}
	case *shims.JobDeregister:
		if m.Purge {
			t.addEvalsOf(a.Before, m.Job)
		}
	case *shims.Collect:
		t.evals = append(t.evals, m.Evals...)
		t.addEvalsOf(a.Before, m.Jobs...)
	case *shims.AllocStop:
		t.addEvals(m.Evals...)
	case *shims.AllocUpdateDesiredTransition:
		t.addEvals(m.Evals...)
	case *shims.ApplyPlan:
		for _, place := range m.Places {
			if place != nil && place.PreviousAllocation != "" {
				t.Allocs = append(t.Allocs, place.PreviousAllocation)
			}
		}
		t.addEvals(m.Eval, m.Blocked)
		t.addEvals(m.Answers...)
	}
	t.evals = append(t.evals, createdEvals(a.Response)...)
	t.Nodes, t.Allocs = sorted(t.Nodes), sorted(t.Allocs)
	t.evals, t.records = sorted(t.evals), sorted(t.records)
}

// createdEvals returns the evaluations that the response names: those that the entry carried and
// those that the FSM created itself.
func createdEvals(r shims.Response) []cluster.EvalID {
	switch r := r.(type) {
	case shims.ChangeApplied:
		return r.Evals
	case shims.NodesDeregistered:
		return r.Evals
	case shims.DrainRequestApplied:
		return r.Evals
	case shims.DrainConfirmed:
		return r.Evals
	}
	return nil
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

// addEvalsOf adds the evaluations of jobs.
func (t *rowIDs) addEvalsOf(before *statestore.Snapshot, jobs ...cluster.JobKey) {
	for _, key := range jobs {
		for e := range before.EvalsByJob(key) {
			t.evals = append(t.evals, e.ID)
		}
	}
}

// confirmedNodes returns the nodes of allocations that may run and that clients report.
func confirmedNodes(before *statestore.Snapshot, reports []cluster.AllocReport) (nodes []cluster.NodeID) {
	for _, r := range reports {
		if a := before.Alloc(r.Alloc); a != nil && opinion.MayRun(a) {
			nodes = append(nodes, a.NodeID)
		}
	}
	return nodes
}

// addCounting adds the records of nodes that count unconfirmed allocations.
func (t *rowIDs) addCounting(before *statestore.Snapshot, nodes ...cluster.NodeID) {
	for _, id := range nodes {
		for d := range before.DrainsByNode(id) {
			if d.Unconfirmed != nil && d.Unconfirmed.Count > 0 {
				t.records = append(t.records, d.ID)
			}
		}
	}
}

// addEnds adds the records that the ends of nodes' drains may write: the records of the drains, the
// oldest records, which the store may delete to make room, and those that count what time confirms
// at an end.
func (t *rowIDs) addEnds(before *statestore.Snapshot, nodes ...cluster.NodeID) {
	t.addCounting(before, nodes...)
	for _, id := range nodes {
		n := before.Node(id)
		if n == nil || n.Drain == nil {
			continue
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
}

// change is one row before and after an entry. Nil is a missing row.
type change[T any] struct{ before, after *T }

// entry is one applied entry with the rows that it changed.
type entry struct {
	shims.Applied
	// at is the proposer's time, or zero if the entry has none.
	at      time.Time
	source  witness.Source
	planned []witness.Planned
	ids     rowIDs
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
	w := applied.Entry(a)
	e.Applied, e.at, e.source, e.planned = a, w.At, w.Source, w.Planned
	e.ids.collect(a, w.Touched)
	was := state{b}
	e.nodes = changes(e.nodes[:0], e.ids.Nodes, was.Node, a.After.Node)
	e.jobs = changes(e.jobs[:0], e.ids.Jobs, was.Job, a.After.Job)
	e.allocs = changes(e.allocs[:0], e.ids.Allocs, was.Alloc, a.After.Alloc)
	e.evals = changes(e.evals[:0], e.ids.evals, func(id cluster.EvalID) *cluster.Evaluation { return b.evals[id] }, a.After.Eval)
	e.records = changes(e.records[:0], e.ids.records, func(id cluster.DrainID) *cluster.Drain { return b.records[id] }, a.After.DrainRecord)
}

// changes appends the rows that differ. The rows before the entry are those of the tables.
func changes[K, T any](all []change[T], ids []K, before, after func(K) *T) []change[T] {
	for _, id := range ids {
		if c := (change[T]{before(id), after(id)}); c.before != c.after {
			all = append(all, c)
		}
	}
	return all
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
