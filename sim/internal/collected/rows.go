package collected

import (
	"iter"
	"reflect"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/placement"
)

// compare finds the deleted rows, and reports a change of any other row, and an answer that does
// not name the deleted rows.
func (e *entry) compare(response shims.Response) {
	m := e.message
	e.jobs = deleted(e, "job", e.before.Jobs(), e.after.Jobs(), (*cluster.Job).Key, m.Jobs)
	allocs, evals := slices.Clone(m.Allocs), slices.Clone(m.Evals)
	ofJobs := 0 // the evaluations and allocations that go with their job
	for _, job := range e.jobs {
		for eval := range e.before.EvalsByJob(job.Key()) {
			if !slices.Contains(m.Evals, eval.ID) {
				evals = append(evals, eval.ID)
				ofJobs++
			}
		}
		for a := range e.before.AllocsByJob(job.Key()) {
			if !job.Stop && !slices.Contains(m.Allocs, a.ID) {
				allocs = append(allocs, a.ID)
				ofJobs++
			}
		}
	}
	e.evals = deleted(e, "evaluation", e.before.Evals(), e.after.Evals(), func(eval *cluster.Evaluation) cluster.EvalID { return eval.ID }, evals)
	e.allocs = deleted(e, "allocation", e.before.Allocs(), e.after.Allocs(), func(a *cluster.Allocation) cluster.AllocID { return a.ID }, allocs)
	deleted(e, "node", e.before.Nodes(), e.after.Nodes(), func(n *cluster.Node) cluster.NodeID { return n.ID }, nil)
	deleted(e, "drain", e.before.Drains(), e.after.Drains(), func(d *cluster.Drain) cluster.DrainID { return d.ID }, nil)

	answer, is := response.(shims.CollectApplied)
	rows := answer.Deleted
	if !is || len(rows.Allocs)+len(rows.Evals)+ofJobs != len(e.allocs)+len(e.evals) || len(rows.Jobs) != len(e.jobs) {
		e.report(WrongAnswer, nil, "the answer is %+v, and the entry deleted %d allocations, %d evaluations and %d jobs", response, len(e.allocs), len(e.evals), len(e.jobs))
	}
}

// deleted returns the rows of a table that the entry has deleted, in their order. It reports the
// rows that the entry changed or created, and deleted rows that are not named.
func deleted[K comparable, T any](e *entry, table string, before, after iter.Seq[*T], key func(*T) K, named []K) (gone []*T) {
	is := map[K]*T{}
	for row := range after {
		is[key(row)] = row
	}
	isNamed := map[K]bool{}
	for _, k := range named {
		isNamed[k] = true
	}
	stayed := 0
	for was := range before {
		k := key(was)
		switch row := is[k]; {
		case row == nil && isNamed[k]:
			gone = append(gone, was)
			continue
		case row == nil:
			e.report(Outside, nil, "%s %v is deleted, and the entry does not name it", table, k)
			continue
		case row != was && !reflect.DeepEqual(row, was):
			e.report(Outside, nil, "%s %v has changed", table, k)
		}
		stayed++
	}
	if len(is) > stayed {
		e.report(Outside, nil, "the entry has created %d rows: %s", len(is)-stayed, table)
	}
	return gone
}

// judgeGroups checks that the groups of the deleted allocations need the same allocations as
// before.
func (e *entry) judgeGroups() {
	judged := map[cluster.GroupKey]bool{}
	for _, a := range e.allocs {
		if key := a.GroupKey(); !judged[key] {
			judged[key] = true
			e.judgeGroup(key)
		}
	}
}

// judgeGroup checks the allocations in slots of one group, and the failures that count for the
// replacements of the others.
func (e *entry) judgeGroup(key cluster.GroupKey) {
	job := e.before.Job(key.Job)
	if job == nil || job.Stop || e.after.Job(key.Job) == nil {
		return
	}
	g := groupNamed(job, key.Name)
	if g == nil {
		return
	}
	for a := range e.before.AllocsByJob(key.Job) {
		if a.TaskGroup != key.Name || a.Job != nil && a.Job.Type != job.Type {
			continue
		}
		holds := placement.Holds(e.before, a, g, e.now)
		if e.after.Alloc(a.ID) == nil {
			if holds {
				e.report(SlotChanged, a, "it held a slot, and it is deleted")
			}
			continue
		}
		if after := placement.Holds(e.after, a, g, e.now); after != holds {
			e.report(SlotChanged, a, "it holds a slot: %t before the entry, %t after it", holds, after)
		}
		if stops := a.DesiredStatus != "run"; stops {
			continue // the servers no longer replace it
		}
		if g.Reschedule != nil {
			was, has := placement.RetryOf(e.before, a, g)
			if is, _ := placement.RetryOf(e.after, a, g); has && was != is {
				e.report(CountChanged, a, "its policy provides %+v, and after the entry %+v", was, is)
			}
			continue
		}
		if was, is := placement.Rescheduled(e.before, a, g), placement.Rescheduled(e.after, a, g); was != is && was <= longestChain {
			e.report(CountChanged, a, "it follows %d failures in a row, and after the entry %d", was, is)
		}
	}
}
