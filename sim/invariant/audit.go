package invariant

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// auditJudge compares the whole state with the tables, which hold the results of all entries.
// It finds the rows that an entry wrote and did not name.
type auditJudge struct{ *facts }

// compare reports whether the state equals the tables.
func (j *auditJudge) compare(s *statestore.Snapshot) bool {
	j.counters.Audits++
	b := j.tables
	existing, registered := 0, 0
	for _, n := range b.nodes {
		if n.row != nil {
			existing++
		}
	}
	for _, job := range b.jobs {
		if job.row != nil {
			registered++
		}
	}
	nodes := compareRows(j, "node", existing, s.Nodes(), func(n *cluster.Node) (string, *cluster.Node) {
		return string(n.ID), b.node(n.ID).row
	})
	jobs := compareRows(j, "job", registered, s.Jobs(), func(row *cluster.Job) (string, *cluster.Job) {
		return keyOf(row).String(), b.job(keyOf(row)).row
	})
	allocs := compareRows(j, "allocation", len(b.allocs), s.Allocs(), func(row *cluster.Allocation) (string, *cluster.Allocation) {
		if known := b.allocs[row.ID]; known != nil {
			return string(row.ID), known.row
		}
		return string(row.ID), nil
	})
	evals := compareRows(j, "evaluation", len(b.evals), s.Evals(), func(row *cluster.Evaluation) (string, *cluster.Evaluation) {
		return string(row.ID), b.evals[row.ID]
	})
	records := compareRows(j, "record", len(b.records), s.Drains(), func(row *cluster.Drain) (string, *cluster.Drain) {
		return string(row.ID), b.records[row.ID]
	})
	return nodes && jobs && allocs && evals && records
}

// compareRows reports whether the rows of one kind in the state equal the known ones in the
// tables. kept returns the name of a row, and its row in the tables. Equal pointers need no
// comparison.
func compareRows[T any](j *auditJudge, noun string, known int, rows iter.Seq[*T], kept func(*T) (string, *T)) bool {
	count, wrong := 0, 0
	for row := range rows {
		count++
		name, old := kept(row)
		if old == row || digestOf(old) == digestOf(row) {
			continue
		}
		if wrong++; wrong == 1 {
			j.find(Unnamed, Violation{}, "the %s %s differs from the result of the entries", noun, name)
		}
	}
	if count != known {
		j.find(Unnamed, Violation{}, "the state has %d rows of the kind %s, and the entries made %d", count, noun, known)
	}
	return wrong == 0 && count == known
}
