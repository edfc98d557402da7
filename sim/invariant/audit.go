package invariant

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// auditJudge compares the whole state with the tables, which hold the results of all entries.
// It finds the rows that an entry wrote and did not name.
type auditJudge struct {
	*facts
	// sinceAudit counts the entries since the last audit.
	sinceAudit int
}

func (j *auditJudge) count() { j.sinceAudit++ }

// rowsPerEntry bounds the cost of audits: at most so many audited rows for each entry. A large
// state is audited less often.
const rowsPerEntry = 16

// due reports whether it is time for an audit.
func (j *auditJudge) due() bool {
	every := j.options.Every
	switch {
	case every <= 0:
		return false
	case every == 1:
		return true
	}
	return j.sinceAudit >= every && j.sinceAudit*rowsPerEntry >= j.tables.rows()
}

// compare reports whether the state equals the tables.
func (j *auditJudge) compare(s *statestore.Snapshot) bool {
	j.sinceAudit = 0
	b := j.tables
	existing, registered := 0, 0
	//lint:order a count
	for _, n := range b.nodes {
		if n.row != nil {
			existing++
		}
	}
	//lint:order a count
	for _, job := range b.jobs {
		if job.row != nil {
			registered++
		}
	}
	now := state{b}
	nodes := compareRows(j, "node", existing, s.Nodes(), func(n *cluster.Node) cluster.NodeID { return n.ID }, now.Node)
	jobs := compareRows(j, "job", registered, s.Jobs(), keyOf, now.Job)
	allocs := compareRows(j, "allocation", len(b.allocs), s.Allocs(), func(a *cluster.Allocation) cluster.AllocID { return a.ID }, now.Alloc)
	evals := compareRows(j, "evaluation", len(b.evals), s.Evals(), func(e *cluster.Evaluation) cluster.EvalID { return e.ID },
		func(id cluster.EvalID) *cluster.Evaluation { return b.evals[id] })
	records := compareRows(j, "record", len(b.records), s.Drains(), func(d *cluster.Drain) cluster.DrainID { return d.ID },
		func(id cluster.DrainID) *cluster.Drain { return b.records[id] })
	return nodes && jobs && allocs && evals && records && j.comparePauses(s)
}

// compareRows reports whether the rows of one kind in the state equal the expected ones in the
// tables. Equal pointers need no comparison.
func compareRows[K, T any](j *auditJudge, noun string, expected int, rows iter.Seq[*T], id func(*T) K, kept func(K) *T) bool {
	count, wrong := 0, 0
	for row := range rows {
		count++
		old := kept(id(row))
		if same(&j.dump, old, row) {
			continue
		}
		if wrong++; wrong == 1 {
			j.find(Unnamed, Violation{}, "the %s %v differs from the result of the entries", noun, id(row))
		}
	}
	if count != expected {
		j.find(Unnamed, Violation{}, "the state has %d rows of the kind %s, and the entries wrote %d", count, noun, expected)
	}
	return wrong == 0 && count == expected
}
