// Package lifecycle changes the rows of a drain: it starts, updates, cancels and ends a drain,
// and applies its marks. An FSM calls it with rows of its state and writes the rows that it
// returns. It is pure: it reads its arguments and nothing else, so every server gets the same
// rows.
//
//	operator's request ──▶ StartDrain · UpdateDrain · CancelDrain
//	entry of marks     ──▶ rules.Recheck            ──▶ ApplyMark, for each accepted mark
//	entry of ends      ──▶ rules.RecheckCompletions ──▶ EndDrain, for each ending
//	node deleted       ──▶ NodeGone
//	job purged         ──▶ CountPurged
//
// # What the store does around it
//
// One entry is one transaction: all rows that the functions return, the evaluations and the
// record of a drain that ended become visible together, with the index of the entry.
//
// The index that a function takes is that of the entry. The functions write it to ModifyIndex
// and, where it belongs there, to Revision, CreateIndex, EndIndex and AllocModifyIndex. The
// store writes it to the CreateIndex of an evaluation that is new: open evaluations are
// ordered by it.
//
// The time that a function takes is the proposer's, from the entry. The functions store it in
// UTC.
//
// A record is kept beside the nodes, by the id of its drain. It outlives its node. The store
// may forget the oldest; see [cluster.MaxDrainRecordsPerNode].
//
// A registration of a node that exists keeps Drain, LastDrain, SchedulingEligibility and
// Events. It neither starts nor ends a drain.
//
// A row that a function takes is not written to, except by [ApplyMark] and [CountPurged],
// which write to copies that the store has made: one entry changes a row many times.
package lifecycle
