package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// ApplyMarks asks allocations to leave their nodes, counts the marks in their
// drains, and upserts the evaluations that act on them. The marks have been
// accepted in this state, see [drainer.Recheck]. One that cannot be: of an
// allocation that does not exist, has ended or was asked already, of no class, or
// whose node is not in that drain, changes nothing. The error is that of
// UpsertEvals.
func (t *Txn) ApplyMarks(at time.Time, marks []drainer.Mark, evals []*cluster.Evaluation) error {
	at = at.UTC()
	allocs, drains := t.editAllocs(), t.editDrains()
	for _, m := range marks {
		a := allocs.look(m.Alloc)
		if a == nil || a.Asked() || a.ClientTerminal() || m.Class == cluster.MarkNone || m.Class >= cluster.MarkClassCount {
			continue
		}
		if d := drains.look(a.NodeID); d == nil || d.ID != m.Drain {
			continue
		}
		drains.edit(a.NodeID).Marked[m.Class]++
		c := allocs.edit(a, at)
		c.AllocModifyIndex = t.written.index
		mark(c, m, at)
	}
	allocs.write()
	drains.write()
	return t.UpsertEvals(evals)
}

func mark(a *cluster.Allocation, m drainer.Mark, at time.Time) {
	d := &a.DesiredTransition
	d.Migrate = true
	d.Drain, d.Class, d.MarkedAt = m.Drain, m.Class, at
	// Batch work that a deadline stops is not placed again elsewhere.
	d.MigrateDisablePlacement = a.JobType() == cluster.JobBatch && (m.Class == cluster.MarkDeadline || m.Class == cluster.MarkForced)
}
