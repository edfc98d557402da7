// Package lifecycle changes the rows of a drain: it starts, updates, pauses, cancels and ends a drain, and
// applies its marks. An FSM calls it with rows of its state and writes the rows that it returns.
// The package is pure: it reads its arguments and nothing else, so every server gets the same rows.
//
//	operator's request ──▶ StartDrain · UpdateDrain · CancelDrain
//	operator's pause   ──▶ PauseDrain · ResumeDrain
//	entry of marks     ──▶ rules.Recheck            ──▶ ApplyMark, for each accepted mark
//	entry of ends      ──▶ rules.RecheckCompletions ──▶ EndDrain, for each ending
//	node deleted       ──▶ NodeGone
//	job purged         ──▶ CountPurged, if it deletes rows of allocations that may run
//	allocation written ──▶ EndStandby, for each write, if the scheduler replaces before it stops
//	ends confirmed     ──▶ Confirm · ConfirmByOperator, for each record of the node
//
// # Duties of the store
//
// One entry is one transaction: all rows that the functions return, the evaluations and the
// record of a drain that ended become visible together, with the index of the entry.
//
// The index that a function takes is that of the entry. The functions write it to ModifyIndex and,
// as the change requires, to Revision, CreateIndex, EndIndex and AllocModifyIndex. The store writes
// it to the CreateIndex of a new evaluation, because open evaluations are ordered by it.
//
// The time that a function takes is the proposer's, from the entry. The functions store it in
// UTC.
//
// A store that does not set [cluster.Allocation].ConfirmedAt, or does not call [Confirm], is correct but
// pessimistic: its records count allocations that were lost, or still stopping, for ever.
//
// The store keeps records separate from nodes, by drain id. A record stays when its node is
// deleted. The store may delete the oldest records; see [cluster.MaxDrainRecordsPerNode].
//
// A registration of an existing node keeps Drain, LastDrain, SchedulingEligibility and Events. It
// neither starts nor ends a drain.
//
// The functions do not change the rows that they take. Only [ApplyMark] and [CountPurged] do: the
// store passes them copies, because one entry may change a row many times.
package lifecycle
