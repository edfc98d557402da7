package invariant

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// audit counts everything: the state has to be what the entries have made it, to
// the last row, whether they named the row or not. What was hidden is found here,
// and taken as it is from then on.
func (j *Judge) audit(s *statestore.Snapshot) {
	j.unread = 0
	j.counters.Audits++
	b := j.book
	nodes := compare(j, "node", len(b.nodes)-b.absent(), s.Nodes(), digestNode, func(n *cluster.Node) (string, *cluster.Node) {
		return string(n.ID), b.node(n.ID).row
	})
	jobs := compare(j, "job", len(b.jobs)-b.unregistered(), s.Jobs(), digestJob, func(row *cluster.Job) (string, *cluster.Job) {
		return keyOf(row).String(), b.job(keyOf(row)).row
	})
	allocs := compare(j, "allocation", len(b.allocs), s.Allocs(), digestAlloc, func(row *cluster.Allocation) (string, *cluster.Allocation) {
		if known := b.allocs[row.ID]; known != nil {
			return string(row.ID), known.row
		}
		return string(row.ID), nil
	})
	evals := compare(j, "evaluation", len(b.evals), s.Evals(), digestEval, func(row *cluster.Evaluation) (string, *cluster.Evaluation) {
		return string(row.ID), b.evals[row.ID]
	})
	records := compare(j, "record", len(b.records), s.Drains(), digestDrain, func(row *cluster.Drain) (string, *cluster.Drain) {
		return string(row.ID), b.records[row.ID]
	})
	if !nodes || !jobs || !allocs || !evals || !records {
		j.take(s)
	}
	j.checkRecords()
	j.checkDrains()
}

// compare holds the rows of a table to those that the entries have made, and
// reports whether they are the same. kept returns a row's name and what the entries
// have made of it; the very same object needs no look.
func compare[T any](j *Judge, what string, known int, rows iter.Seq[*T], hash func(*T) digest, kept func(*T) (string, *T)) bool {
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
func (b *book) absent() (count int) {
	for _, n := range b.nodes {
		if n.row == nil {
			count++
		}
	}
	return count
}

// unregistered counts the jobs that are only named.
func (b *book) unregistered() (count int) {
	for _, j := range b.jobs {
		if j.row == nil {
			count++
		}
	}
	return count
}

// checkDrains holds the drains that were ever seen to where they are now: running
// on their node, or ended.
func (j *Judge) checkDrains() {
	for _, n := range j.book.draining {
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
	if running != len(j.book.draining) {
		j.find(NoRecord, Violation{}, "%d drains have not ended, and %d run", running, len(j.book.draining))
	}
}
