package statestore

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// PutNode, PutJob, PutAlloc and PutEval write a row unchanged, or delete the
// existing one if the row is nil.
func (t *Txn) PutNode(id cluster.NodeID, n *cluster.Node) { t.rows.putNode(t.State().Node(id), n) }
func (t *Txn) PutJob(key cluster.JobKey, j *cluster.Job)  { t.rows.putJob(t.State().Job(key), j) }
func (t *Txn) PutAlloc(id cluster.AllocID, a *cluster.Allocation) {
	t.rows.putAlloc(t.State().Alloc(id), a)
}
func (t *Txn) PutEval(id cluster.EvalID, e *cluster.Evaluation) {
	t.rows.putEval(t.State().Eval(id), e)
}

// PutClaims replaces the claims of an allocation.
func PutClaims(t *Txn, a cluster.AllocID, claims ...*cluster.VolumeClaim) {
	edits := claimEdits{&t.rows}
	for _, c := range slices.Collect(t.State().WorkView().ClaimsOfAlloc(a)) {
		edits.put(c, nil)
	}
	for _, c := range claims {
		edits.put(nil, c)
	}
}
