// Package invariant judges runs of a simulated cluster. It checks the guarantees G1 to G12 of
// the drainer, and recounts each of them from the state and from the events. It shares no code
// with the drainer or with the re-checks of the FSM, and it reads none of the store's indexes.
// It uses the rows of package cluster and the plain types of entries, answers and reports. A
// test enforces that. The contract of single rows comes from witness/opinion.
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
// The judge keeps tables of the newest state: the row objects of the store, by node, job and
// group. The judge looks up the rows that an entry may have written, judges them in the state
// before the entry, updates the tables, and judges them in the state after it. So one entry
// costs a walk over the live allocations of its groups. From time to time the judge compares
// the whole state. That finds rows which an entry wrote and did not name ([Unnamed]).
//
// One rule applies to marks, ends and refusals: each applied item must hold in the state where
// it is applied, and each item that holds there must be applied. So a re-check that accepts too
// much breaks G1, G2, G3 or G5, and a re-check that refuses too much breaks G6.
//
// # Guarantees
//
//	G1  budget    Each accepted mark, in the state left by the marks before it: the room of
//	              a paced mark, the class of every mark, the slots of free and canary marks.
//	G2  cause     The drain and its revision; the marks that a cancel withdraws; no other
//	              entries change marks and revisions.
//	G3  order     The turn of each mark; batch work runs until the deadline.
//	G4  end       After all faults, each drain ends within a bound that follows from its
//	              deadline, the stop times on its node and the configuration. At quiet points,
//	              every possible item is applied or planned. Shown bounds are kept.
//	G5  truth     Each end agrees with its contract, outcome, counts and record.
//	G6  nothing   Evaluations beside marks; one evaluation of each job that a change concerns,
//	    lost      and of no other; good items are made; answers are true; barriers come before
//	              plans; failed writes are planned again.
//	G7  from      A fresh drainer and the running one want the same; two runs of one story
//	    state     reach the same facts.
//	G8  reasons   Each reason is recomputed, with its numbers and its start.
//	G9  bounds    Ids, bytes, entries in flight, looks at the state, waits, records.
//	G10 quiet     No step at a time that nothing states; no entry without effect; no endless
//	              steps at one time.
//	G11 replicas  A digest of the rows of each entry on every server; whole states after a
//	              restore and at the end; the order of items.
//	G12 cost      A drainer follows no job that no running drain concerns.
//
// # Faults
//
// Faults switch nothing off. Where the contract makes an exception, the judge makes the same
// exception:
//
//   - Deadlines pass by the leader's clock. The judge judges a mark of class deadline by the time
//     of its entry, and that time by the clock of the step that proposed it ([Mistimed]). It
//     accepts that leaders with different clocks disagree on a deadline.
//   - The bound of G4 holds while there is a leader with a quorum. Each drain gets its bound at
//     the end of all faults. It gets another one when the leader changes, a clock is set, its
//     strategy changes, or an allocation lands on its node.
//   - A drainer may leave an item undone while it waits: for an answer or a barrier, after a
//     failure or a refusal, for a look that the rate allows later, or because a clock was set.
//     The wait after the nth failure in a row is known exactly: [Options].RetryBase, doubled
//     each time, at most RetryMax. A wait after a refusal concerns that item only. The world
//     says whether it holds the drainer up ([Truth]).
//   - A deadline may be late by the coalescing window. Until then the judge wants nothing of its
//     node or of the groups on it.
//   - A drain whose storage plugins wait for all other allocations has no bound.
//   - A drainer may use an allowed look late. So one look more than the burst may come at once.
//
// # Cost
//
// An entry costs as much as its own rows, and at most a few rows of the whole state. A quiet
// point costs as much as the allocations on draining nodes and their groups. So tell the judge
// of a sample of the quiet points.
package invariant
