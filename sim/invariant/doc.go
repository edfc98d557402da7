// Package invariant judges runs of a simulated cluster. It checks the guarantees G1 to G12 of
// the drainer against the state and the events. It shares no code with the drainer or with the
// re-checks of the FSM, and it decides nothing by the store's indexes. It uses the rows of
// package cluster and the plain types of entries, answers and reports. A test enforces that.
// The contract of single rows comes from witness/opinion. A witness over the judge's tables judges
// the rows of G2 and G5, and each mark and each end once more; its findings are violations.
//
// # Events
//
// A [Judge] receives every event when it happens:
//
//   - each applied entry with the states before and after it ([Judge.Applied]);
//   - the proposals of drainers and the answers to them ([Judge.Proposed], [Judge.NotTaken],
//     [Judge.Answered]), their steps ([Judge.Stepped]) and terms ([Judge.Began], [Judge.Ended]);
//   - the leader's reports at quiet points ([Judge.Quiet]), and long silences ([Judge.Still]);
//   - the end of all faults ([Judge.Calm]);
//   - the same entries on other servers ([Judge.Replica]), and the last state ([Judge.End]).
//
// Each broken guarantee is a [Violation]. A [Check] names it.
//
// # Counting
//
// The judge keeps tables of the newest state: the store's row objects by node, job and group.
// For each entry, the judge reads the rows that the entry may have written. It judges them
// in the state before the entry, updates the tables, and judges them in the state after it. So
// one entry costs a walk over the live allocations of its groups. From time to time an audit
// compares the whole state with the tables. The audit finds rows that an entry wrote and did
// not name ([Unnamed]).
//
// One rule applies to marks and ends: an item is applied exactly if the contract allows it in
// the state where it is applied. So a re-check that accepts too much breaks G1, G2, G3 or G5,
// and a re-check that refuses too much breaks G6.
//
// # Guarantees
//
//	G1  budget    Each accepted mark in the state after the marks before it: the room of a
//	              paced mark, the class of every mark, the slots of free and canary marks.
//	              Each verdict that a client reports is in the row. In a group with a
//	              max_surge, each request for a replacement, and the healthy replacement
//	              of each paced mark. An allocation stands by exactly while its
//	              original is in place.
//	G2  cause     The drain and its revision. A cancel withdraws the marks of its drain. Other
//	              entries change no marks and revisions.
//	G3  order     The turn of each mark. Batch work runs until the deadline.
//	G4  end       After all faults, each drain ends within a bound that follows from its
//	              deadline, the stop times on its node and the configuration. At quiet points,
//	              every possible item is applied or planned. The drainer keeps shown bounds.
//	G5  truth     The contract, outcome, counts and record of each end. Later only the count of
//	              unconfirmed allocations falls.
//	G6  nothing   One evaluation of each job that an entry concerns, and no other. The FSM
//	    lost      applies valid items. Answers are true. Barriers come before plans. Failed
//	              writes are planned again.
//	G7  from      A fresh drainer and the running one plan the same. Two runs of one story
//	    state     reach the same facts.
//	G8  reasons   Each reason with its numbers and its start.
//	G9  bounds    Ids, bytes, entries in flight, reads of the state, waits, records.
//	G10 quiet     No step without a reason, no entry without effect, no endless steps.
//	G11 replicas  A digest of the rows of each entry on every server. Whole states after a
//	              restore and at the end. The order of items.
//	G12 cost      A drainer follows only jobs that a running drain concerns.
//
// # Faults
//
// Faults disable no check. The judge makes only the exceptions of the contract:
//
//   - Deadlines pass by the leader's clock. The judge judges a deadline mark by the time of its
//     entry, and that time by the clock of the step that proposed it ([Mistimed]). It accepts
//     that leaders with different clocks disagree on a deadline.
//   - The bound of G4 holds while there is a leader with a quorum. Each drain gets its bound at
//     the end of all faults. It gets another one when the leader changes, a clock is set, its
//     strategy changes, or an allocation is placed on its node.
//   - A drainer may delay an item while it waits: for an answer or a barrier, after a failure or
//     a refusal, for the next read that the rate allows, or because a clock was set. The judge
//     has the exact wait after the nth failure in a row: [Options].RetryBase, doubled each
//     time, at most RetryMax. A wait after a refusal concerns that item only. [Truth] reports
//     whether the world delays the drainer.
//   - A deadline may be late by the coalescing window. Until then the judge expects no marks on
//     its node or in the groups on it.
//   - A drain whose storage plugins wait for all other allocations has no bound.
//   - A drainer may use an allowed read late. So one read more than the burst may come at once.
//
// # Cost
//
// The cost of an entry is that of its own rows, and of a few rows for the audits. The cost of
// a quiet point is that of all allocations on draining nodes and of their groups. So pass only
// a sample of the quiet points to the judge.
package invariant
