package cluster

import "time"

// DrainUpdate is an operator's request to start, update or end the drain of a node.
type DrainUpdate struct {
	Node NodeID
	// Spec is the strategy that the operator asks for, or nil to end the drain.
	Spec *DrainSpec
	// Drain is the id of the drain if the request starts one; it must be new. The server
	// sets it if it is empty. A request that updates or ends a drain does not use it.
	Drain DrainID
	// MarkEligible makes the node eligible if the request leaves it not draining.
	MarkEligible bool
	// At is the proposer's time, which the server sets. A deadline counts from it.
	At time.Time
	// Key is the request's idempotency key, or empty.
	Key string
	// Meta and UpdatedBy describe the request, or are empty: then the drain keeps the
	// values of the request before.
	Meta      map[string]string
	UpdatedBy string
}

// DrainResult is the result of a [DrainUpdate].
type DrainResult struct {
	// Drain is the drain that the request started, updated or ended, or that a request
	// with the same key changed before; empty if the node did not drain and does not now.
	Drain DrainID
	// Repeated reports that a request with the same key was applied before: this one
	// changed nothing.
	Repeated bool
	// Withdrawn counts the marks that ending the drain withdrew.
	Withdrawn int
	// Stopping are, by id, the allocations whose mark could not be withdrawn: the servers
	// want them stopped, and they have not stopped yet.
	Stopping []AllocID
}

// Written is the result of a write.
type Written struct {
	// Index is the raft index of the entry; zero if the write needed no entry.
	Index uint64
	// Evals are the evaluations that the entry made, or nil.
	Evals []EvalID
	// Unchanged is the JobModifyIndex of a job that is the same after its registration as before, so that
	// the entry only evaluates it; otherwise zero.
	Unchanged uint64
}

// EvalIndex is the raft index of the evaluations, or zero if the entry made none.
func (w Written) EvalIndex() uint64 {
	if len(w.Evals) == 0 {
		return 0
	}
	return w.Index
}

// DrainWritten is the result of writing a [DrainUpdate].
type DrainWritten struct {
	Written
	DrainResult
}
