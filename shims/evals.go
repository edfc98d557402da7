package shims

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// evaluate writes the evaluations that an entry carries, and the required evaluations of other
// jobs. It returns the ids of both.
//
// The FSM computes the required evaluations when it applies the entry. The proposer cannot:
// an entry in flight, such as a plan that places an allocation on a failing node, may add a
// job that the proposer does not have, and no other evaluation would follow.
func evaluate(txn *statestore.Txn, carried, required []*cluster.Evaluation) ([]cluster.EvalID, error) {
	evals := carried
	if len(required) > 0 {
		evals = complete(txn.State().Index(), carried, required)
	}
	if len(evals) == 0 {
		return nil, nil
	}
	ids := make([]cluster.EvalID, len(evals))
	for i, e := range evals {
		ids[i] = e.ID
	}
	return ids, txn.UpsertEvals(evals)
}

// complete returns the evaluations that an entry carries and, with ids, one required
// evaluation for each other job.
func complete(index uint64, carried, required []*cluster.Evaluation) []*cluster.Evaluation {
	covered := make(map[cluster.JobKey]bool, len(carried)+len(required))
	evals := make([]*cluster.Evaluation, 0, len(carried)+len(required))
	for _, e := range carried {
		covered[e.JobKey()] = covered[e.JobKey()] || e.Status == cluster.EvalPending
		evals = append(evals, e)
	}
	for _, e := range required {
		if key := e.JobKey(); !covered[key] {
			covered[key] = true
			e.ID = evalID(index, key)
			evals = append(evals, e)
		}
	}
	return evals
}

// evalID is the id of the evaluation that the entry with the index creates for the job. All
// servers must compute the same id, so it is a hash of index and job: an entry creates at
// most one evaluation for a job. It is a UUID of version 8, and the random UUIDs of proposers
// have version 4.
func evalID(index uint64, job cluster.JobKey) cluster.EvalID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", index, job.Namespace, job.ID))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // of RFC 9562
	return cluster.EvalID(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
}

// unnamed returns no id: evaluate sets the ids of the evaluations that it writes.
func unnamed() cluster.EvalID { return "" }

// nodeEvals are the evaluations that a written change of nodes requires.
func nodeEvals(txn *statestore.Txn, at time.Time, nodes ...cluster.NodeID) (evals []*cluster.Evaluation) {
	for _, id := range nodes {
		evals = append(evals, scheduler.NodeEvals(txn.State().WorkView(), id, cluster.TriggerNodeUpdate, at, unnamed)...)
	}
	return evals
}

// held are the allocations on nodes that keep their slots until their ends are confirmed.
func held(txn *statestore.Txn, nodes ...cluster.NodeID) (held []cluster.AllocID) {
	v := txn.State().WorkView()
	for _, id := range nodes {
		for a := range txn.State().DrainView().Unconfirmed(id) {
			if scheduler.IsHeld(v, a) {
				held = append(held, a.ID)
			}
		}
	}
	return held
}

// confirmedEvals are the evaluations that written confirmations require: of the jobs of allocations that
// kept their slots before.
func confirmedEvals(txn *statestore.Txn, at time.Time, held []cluster.AllocID) (evals []*cluster.Evaluation) {
	v := txn.State().WorkView()
	for _, id := range held {
		if a := v.Alloc(id); a != nil && !a.Unconfirmed() {
			evals = append(evals, scheduler.AllocEval(v, id, cluster.TriggerNodeUpdate, at, "")...)
		}
	}
	return evals
}

// reportEvals are the evaluations that reports require. The transaction has not written the
// reports yet. The time of the newest report is the time of the evaluations.
func reportEvals(txn *statestore.Txn, reports []cluster.AllocReport) []*cluster.Evaluation {
	var at time.Time
	for _, r := range reports {
		if r.At.After(at) {
			at = r.At
		}
	}
	return scheduler.ReportEvals(txn.State().WorkView(), reports, at, unnamed)
}
