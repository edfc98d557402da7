package wire

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Evaluation is an evaluation in full, also in lists. Zero fields are left out.
type Evaluation struct {
	ID                string         `json:",omitempty"`
	Namespace         string         `json:",omitempty"`
	Priority          int            `json:",omitempty"`
	Type              string         `json:",omitempty"`
	TriggeredBy       string         `json:",omitempty"`
	JobID             string         `json:",omitempty"`
	NodeID            string         `json:",omitempty"`
	Status            string         `json:",omitempty"`
	StatusDescription string         `json:",omitempty"`
	PreviousEval      string         `json:",omitempty"`
	BlockedEval       string         `json:",omitempty"`
	QueuedAllocations map[string]int `json:",omitempty"`
	// FailedTGAllocs has, by group, the reason why allocations cannot be placed. It is computed for
	// evaluations that are blocked, and for those that made a blocked one.
	FailedTGAllocs map[string]*AllocationMetric `json:",omitempty"`
	// RelatedEvals are the evaluations before and after this one, if the request had related=true.
	RelatedEvals  []*EvaluationStub `json:",omitempty"`
	SnapshotIndex uint64            `json:",omitempty"`
	// WaitUntil is when the replacement of the allocation with the same ID is due, or null.
	WaitUntil   Time   `json:",omitzero"`
	CreateIndex uint64 `json:",omitempty"`
	ModifyIndex uint64 `json:",omitempty"`
	// CreateTime and ModifyTime are in Unix nanoseconds.
	CreateTime int64 `json:",omitempty"`
	ModifyTime int64 `json:",omitempty"`
}

// EvaluationStub is an evaluation that another one is related to.
type EvaluationStub struct {
	ID                string
	Priority          int
	Type              string
	TriggeredBy       string
	Namespace         string
	JobID             string
	NodeID            string
	DeploymentID      string
	Status            string
	StatusDescription string
	WaitUntil         Time
	NextEval          string
	PreviousEval      string
	BlockedEval       string
	CreateIndex       uint64
	ModifyIndex       uint64
	// CreateTime and ModifyTime are in Unix nanoseconds.
	CreateTime int64
	ModifyTime int64
}

// NewEvaluationStub returns the evaluation as another one lists it.
func NewEvaluationStub(e *cluster.Evaluation) *EvaluationStub {
	return &EvaluationStub{
		ID: string(e.ID), Priority: e.Priority, Type: string(e.Type), TriggeredBy: string(e.TriggeredBy), Namespace: string(e.Namespace),
		JobID: string(e.JobID), NodeID: string(e.NodeID), Status: string(e.Status), StatusDescription: e.StatusDescription,
		PreviousEval: string(e.PreviousEval), BlockedEval: string(e.BlockedEval),
		CreateIndex: e.CreateIndex, ModifyIndex: e.ModifyIndex, CreateTime: unixNano(e.CreateTime), ModifyTime: unixNano(e.ModifyTime),
	}
}

// NewEvaluation returns the evaluation.
func NewEvaluation(e *cluster.Evaluation) *Evaluation {
	return &Evaluation{
		ID: string(e.ID), Namespace: string(e.Namespace), Priority: e.Priority, Type: string(e.Type), TriggeredBy: string(e.TriggeredBy),
		JobID: string(e.JobID), NodeID: string(e.NodeID), Status: string(e.Status), StatusDescription: e.StatusDescription,
		PreviousEval: string(e.PreviousEval), BlockedEval: string(e.BlockedEval), QueuedAllocations: e.Queued,
		SnapshotIndex: e.SnapshotIndex, CreateIndex: e.CreateIndex, ModifyIndex: e.ModifyIndex,
		CreateTime: unixNano(e.CreateTime), ModifyTime: unixNano(e.ModifyTime),
	}
}
