package shims

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// evaluate writes the evaluations that an entry carries, and of those that its
// change calls for the ones of jobs that it carries none of. It returns the ids
// of all of them.
//
// What a change calls for is found out here, when it is applied, and not by
// whoever proposes it: entries that were on their way at that time, such as a plan
// that places something on a node that is about to go down, may concern jobs that
// the proposer does not know of, and nobody would look at those again.
func evaluate(txn *statestore.Txn, carried, called []*cluster.Evaluation) ([]cluster.EvalID, error) {
	evals := carried
	if len(called) > 0 {
		evals = complete(txn.Index(), carried, called)
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

// complete returns the evaluations that an entry carries and, with ids, those
// that are called for of other jobs, one of each.
func complete(index uint64, carried, called []*cluster.Evaluation) []*cluster.Evaluation {
	looked := make(map[cluster.JobKey]bool, len(carried)+len(called))
	evals := make([]*cluster.Evaluation, 0, len(carried)+len(called))
	for _, e := range carried {
		looked[e.JobKey()] = looked[e.JobKey()] || e.Status == cluster.EvalPending
		evals = append(evals, e)
	}
	for _, e := range called {
		if key := e.JobKey(); !looked[key] {
			looked[key] = true
			e.ID = evalID(index, key)
			evals = append(evals, e)
		}
	}
	return evals
}

// evalID is the id of the evaluation that the entry of that index makes of a job.
// Every server must come to the same one, so it is not random but a hash of what
// no other evaluation has in common with it: an entry makes one of a job at most.
// It is a UUID as the random ones of proposers are, of the version that is left to
// such purposes, and so none of theirs.
func evalID(index uint64, job cluster.JobKey) cluster.EvalID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", index, job.Namespace, job.ID))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // of RFC 9562
	return cluster.EvalID(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
}

// unnamed has the scheduler leave ids to evaluate, which gives them to what is
// written and to nothing else.
func unnamed() cluster.EvalID { return "" }

// nodeEvals are the evaluations that a change of nodes calls for that has been
// written.
func nodeEvals(txn *statestore.Txn, at time.Time, nodes ...cluster.NodeID) (evals []*cluster.Evaluation) {
	for _, id := range nodes {
		evals = append(evals, scheduler.NodeEvals(txn, id, cluster.TriggerNodeUpdate, at, unnamed)...)
	}
	return evals
}

// reportEvals are those that reports call for that have not been written yet. They
// are as old as the newest report.
func reportEvals(txn *statestore.Txn, reports []cluster.AllocReport) []*cluster.Evaluation {
	var at time.Time
	for _, r := range reports {
		if r.At.After(at) {
			at = r.At
		}
	}
	return scheduler.ReportEvals(txn, reports, at, unnamed)
}
