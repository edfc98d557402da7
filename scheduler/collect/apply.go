package collect

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Txn is the transaction in which an entry is applied. Its reads see its own writes.
type Txn interface {
	View
	// DeleteAllocs and DeleteEvals delete rows.
	DeleteAllocs([]cluster.AllocID)
	DeleteEvals([]cluster.EvalID)
	// DeleteJob with purge deletes the job with its evaluations.
	DeleteJob(k cluster.JobKey, purge bool) error
}

// Apply deletes the rows of a request that may be deleted in this state, and returns them. It
// judges and deletes one kind after the other: allocations may be all that keeps an evaluation,
// and both may be all that keeps a job. An error means that the transaction must be aborted.
func Apply(txn Txn, r *Request) (done Rows, err error) {
	judge := NewJudge(txn, r.Before)
	for _, id := range distinct(r.Allocs) {
		if judge.Alloc(txn.Alloc(id)) == "" {
			done.Allocs = append(done.Allocs, id)
		}
	}
	txn.DeleteAllocs(done.Allocs)
	judge = NewJudge(txn, r.Before)
	for _, id := range distinct(r.Evals) {
		if judge.Eval(txn.Eval(id)) == "" {
			done.Evals = append(done.Evals, id)
		}
	}
	txn.DeleteEvals(done.Evals)
	for _, key := range r.Jobs {
		if NewJudge(txn, r.Before).Job(txn.Job(key)) != "" {
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
