package invariant

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// auditJudge compares whole states: a state must equal the result of its entries, in each
// row, whether the entries named the row or not.
type auditJudge struct{ *facts }

// compare reports whether the state is what the entries have made it.
func (j *auditJudge) compare(s *statestore.Snapshot) bool {
	j.counters.Audits++
	b := j.tables
	nodes := compareRows(j, "node", len(b.nodes)-b.absent(), s.Nodes(), digestNode, func(n *cluster.Node) (string, *cluster.Node) {
		return string(n.ID), b.node(n.ID).row
	})
	jobs := compareRows(j, "job", len(b.jobs)-b.unregistered(), s.Jobs(), digestJob, func(row *cluster.Job) (string, *cluster.Job) {
		return keyOf(row).String(), b.job(keyOf(row)).row
	})
	allocs := compareRows(j, "allocation", len(b.allocs), s.Allocs(), digestAlloc, func(row *cluster.Allocation) (string, *cluster.Allocation) {
		if known := b.allocs[row.ID]; known != nil {
			return string(row.ID), known.row
		}
		return string(row.ID), nil
	})
	evals := compareRows(j, "evaluation", len(b.evals), s.Evals(), digestEval, func(row *cluster.Evaluation) (string, *cluster.Evaluation) {
		return string(row.ID), b.evals[row.ID]
	})
	records := compareRows(j, "record", len(b.records), s.Drains(), digestDrain, func(row *cluster.Drain) (string, *cluster.Drain) {
		return string(row.ID), b.records[row.ID]
	})
	return nodes && jobs && allocs && evals && records
}

// compareRows holds the rows of a table to those that the entries have made, and
// reports whether they are the same. kept returns a row's name and what the entries
// have made of it; the very same object needs no look.
func compareRows[T any](j *auditJudge, what string, known int, rows iter.Seq[*T], hash func(*T) digest, kept func(*T) (string, *T)) bool {
	count, wrong := 0, 0
	for row := range rows {
		count++
		name, old := kept(row)
		if old == row || hash(old) == hash(row) {
			continue
		}
		if wrong++; wrong == 1 {
			j.find(Unnamed, Violation{}, "the %s %s is not what the entries have made it", what, name)
		}
	}
	if count != known {
		j.find(Unnamed, Violation{}, "there are %d rows of the kind %s, and the entries have made %d", count, what, known)
	}
	return wrong == 0 && count == known
}

// absent counts the nodes that are only named.
func (b *tables) absent() (count int) {
	for _, n := range b.nodes {
		if n.row == nil {
			count++
		}
	}
	return count
}

// unregistered counts the jobs that are only named.
func (b *tables) unregistered() (count int) {
	for _, j := range b.jobs {
		if j.row == nil {
			count++
		}
	}
	return count
}

// checkDrains holds the drains that were ever seen to where they are now: running
// on their node, or ended.
func (j *auditJudge) checkDrains() {
	for _, n := range j.tables.draining {
		if d := j.drains[n.drain().ID]; d == nil || d.ended {
			j.find(SecondOutcome, on(n), "the drain runs, and no entry has begun it or one has ended it")
		}
	}
	running := 0
	for _, d := range j.drains {
		if !d.ended {
			running++
		}
	}
	if running != len(j.tables.draining) {
		j.find(NoRecord, Violation{}, "%d drains have not ended, and %d run", running, len(j.tables.draining))
	}
}
