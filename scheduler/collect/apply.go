package collect

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Txn is the transaction in which an entry is applied.
type Txn interface {
	// DeleteAllocs and DeleteEvals delete rows.
	DeleteAllocs([]cluster.AllocID)
	DeleteEvals([]cluster.EvalID)
	// DeleteJob with purge deletes the job with its evaluations.
	DeleteJob(k cluster.JobKey, purge bool) error
}

// Apply deletes the rows of a request that may be deleted in this state, and returns them. The view
// is the state of the transaction, and shows its writes. Apply
// judges and deletes one kind after the other: allocations may be all that keeps an evaluation,
// and both may be all that keeps a job. An error means that the transaction must be aborted.
func Apply(v View, txn Txn, r *Request) (done Rows, err error) {
	judge := NewJudge(v, r.Before)
	for _, id := range distinct(r.Allocs) {
		if judge.Alloc(v.Alloc(id)) == "" {
			done.Allocs = append(done.Allocs, id)
		}
	}
	txn.DeleteAllocs(done.Allocs)
	judge = NewJudge(v, r.Before)
	for _, id := range distinct(r.Evals) {
		if judge.Eval(v.Eval(id)) == "" {
			done.Evals = append(done.Evals, id)
		}
	}
	txn.DeleteEvals(done.Evals)
	for _, key := range r.Jobs {
		if NewJudge(v, r.Before).Job(v.Job(key)) != "" {
			continue
		}
		if err := txn.DeleteJob(key, true); err != nil {
			return Rows{}, err
		}
		done.Jobs = append(done.Jobs, key)
	}
	return done, nil
}

// distinct returns the ids in order, each once.
func distinct[ID cmp.Ordered](ids []ID) []ID {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}
