package statestore

import (
	"errors"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpsertEvals writes the evaluations that have an id. The error names the evaluations without one.
func (t *Txn) UpsertEvals(evals []*cluster.Evaluation) error {
	var errs []error
	edits := make([]*cluster.Evaluation, 0, 2*len(evals)) // before, after, before, after
	for i, e := range evals {
		if e == nil || e.ID == "" {
			errs = append(errs, fmt.Errorf("evaluation %d has no id", i))
			continue
		}
		before, after := t.State().Eval(e.ID), e.Copy()
		after.CreateIndex = t.rows.written.index
		if before != nil {
			after.CreateIndex = before.CreateIndex
		}
		after.ModifyIndex = t.rows.written.index
		after.CreateTime, after.ModifyTime = after.CreateTime.UTC(), after.ModifyTime.UTC()
		edits = append(edits, before, after)
	}
	for i := 0; i < len(edits); i += 2 {
		t.rows.putEval(edits[i], edits[i+1])
	}
	return errors.Join(errs...)
}

// DeleteEvals deletes evaluations. It ignores those that do not exist or are open. The caller has
// checked that nothing needs them, so the deletion concerns no feed.
func (t *Txn) DeleteEvals(ids []cluster.EvalID) {
	for _, e := range rowsOf(ids, t.State().Eval) {
		if !e.Open() {
			put(&t.rows, TableEvals, e, nil)
		}
	}
}
