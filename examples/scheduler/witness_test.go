package main

import (
	"iter"
	"maps"
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// judge applies a log again, from its beginning, and lets the witness judge each entry. It returns
// the last state.
func judge(t *testing.T, path string) (*state, witness.Report) {
	t.Helper()
	file, err := os.Open(path)
	must.NoError(t, err)
	defer file.Close() //nolint:errcheck // it was only read
	w := witness.New(witness.Options{StopMargin: rules.DefaultStopMargin})
	log, now := fileLog{file: file}, newState()
	for {
		e, err := log.next()
		must.NoError(t, err)
		if e == nil {
			must.SliceEmpty(t, w.Audit(rows{now}), must.Sprint("what no entry named"))
			report := w.Report()
			must.SliceEmpty(t, report.Findings)
			return now, report
		}
		before := now
		now, _ = before.apply(e)
		w.Observe(witness.Entry{
			Index: now.index, At: e.At, Before: rows{before}, After: rows{now}, Touched: touched(before, now), Planned: planned(e),
		})
	}
}

// touched names the rows that an entry has written: an entry replaces the rows that it writes.
func touched(before, after *state) witness.Touched {
	return witness.Touched{
		Nodes: replaced(before.nodes, after.nodes), Jobs: replaced(before.jobs, after.jobs), Allocs: replaced(before.allocs, after.allocs),
	}
}

func replaced[K comparable, T any](before, after map[K]*T) (keys []K) {
	for key, row := range after { //lint:order the witness sorts them
		if before[key] != row {
			keys = append(keys, key)
		}
	}
	return keys
}

// planned names what the drainer planned in an entry.
func planned(e *entry) (items []witness.Planned) {
	switch {
	case e.Marks != nil:
		for _, m := range e.Marks.Marks {
			items = append(items, witness.Planned{Alloc: m.Alloc, Node: m.Node, Revision: m.Revision})
		}
	case e.Completions != nil:
		for _, c := range e.Completions.Completions {
			items = append(items, witness.Planned{Node: c.Node, Revision: c.Revision})
		}
	}
	return items
}

// rows shows a state to the witness. The witness needs no order.
type rows struct{ *state }

var _ witness.World = rows{}

func (r rows) Node(id cluster.NodeID) *cluster.Node          { return r.nodes[id] }
func (r rows) Job(key cluster.JobKey) *cluster.Job           { return r.jobs[key] }
func (r rows) Alloc(id cluster.AllocID) *cluster.Allocation  { return r.allocs[id] }
func (r rows) DrainRecord(id cluster.DrainID) *cluster.Drain { return r.drains[id] }
func (r rows) Nodes() iter.Seq[*cluster.Node]                { return maps.Values(r.nodes) }
func (r rows) Allocs() iter.Seq[*cluster.Allocation]         { return maps.Values(r.allocs) }
func (r rows) Drains() iter.Seq[*cluster.Drain]              { return maps.Values(r.drains) }

func (r rows) AllocsByJob(key cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return where(r.allocs, func(a *cluster.Allocation) bool { return a.JobKey() == key })
}

func (r rows) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return where(r.allocs, func(a *cluster.Allocation) bool { return a.NodeID == id })
}

func (r rows) EvalsByJob(key cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return where(r.evals, func(e *cluster.Evaluation) bool { return e.JobKey() == key })
}

func where[K comparable, T any](all map[K]*T, is func(*T) bool) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, row := range all { //lint:order the witness needs no order
			if is(row) && !yield(row) {
				return
			}
		}
	}
}
