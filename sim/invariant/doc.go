// Package invariant holds runs of a simulated cluster to the guarantees G1 to G11
// of the drainer, each re-counted from the state and from what happens. It believes
// nobody: it shares no code with the drainer that plans, nor with the re-checks that
// let a plan pass, nor does it look anything up in the indexes that the drainer
// reads by. Of the nouns it reads fields, of the drainer's packages the plain types
// of entries, answers and reports; a test holds it to that. What the contract says
// of one row it takes from witness/opinion.
//
// # What a judge is told
//
// A [Judge] is told what happens when it does: every applied entry with the states
// around it ([Judge.Applied]), what drainers propose and are answered
// ([Judge.Proposed], [Judge.NotTaken], [Judge.Answered]), their steps
// ([Judge.Stepped]) and terms ([Judge.Began], [Judge.Ended]), what the leader says at
// quiet points ([Judge.Quiet]), when nothing has happened for long ([Judge.Still]),
// when faults have ended ([Judge.Calm]), what other servers make of the same entries
// ([Judge.Replica]), and the last state ([Judge.End]). What is broken is a [Violation],
// named by its [Check].
//
// # How it counts
//
// The judge keeps a book: the rows of the newest state, the very objects of the
// store, by node, job and group. An entry names the rows that it may have written;
// these are looked up, judged in the state before it, put into the book, and judged
// in the state after it. So a group is counted by a walk over its live allocations
// in memory, once for each entry. Every so many entries the whole state is walked:
// what an entry wrote and did not name is found then ([Unnamed]).
//
// Marks, ends and refusals are all judged by one rule: what was done must hold where
// it was applied, and what holds there must have been done. So a re-check that
// accepts too much breaks G1, G2, G3 or G5, and one that refuses too much breaks G6.
//
// # What is judged
//
//	G1  budget    Each accepted mark, in the state left by the marks before it: room
//	              of a paced one, class of every one, slots of free and canary marks.
//	G2  cause     The drain and its revision; what a cancel takes back; that marks and
//	              revisions come and go in no other entries.
//	G3  order     The turn of each mark; batch work before the deadline.
//	G4  end       In the calm, a bound of each drain from its deadline, the stop times
//	              on its node and the configuration; at quiet points, that what could
//	              be done is done or planned; that shown bounds are kept.
//	G5  truth     Each end against its contract, outcome, counts and record.
//	G6  nothing   Evaluations beside marks; one of each job that a change concerns, and
//	    lost      of no other; good items made; answers true; barriers before plans;
//	              what failed planned again.
//	G7  from      A fresh drainer's wants against the running one's; the facts that two
//	    state     tellings of a story come to.
//	G8  reasons   Each reason found again, with its numbers and since when.
//	G9  bounds    Ids, bytes, entries in flight, looks at the state, records.
//	G10 quiet     Steps at times that nothing states; entries that could change nothing;
//	              steps without end at one time.
//	G11 replicas  A digest of the rows of each entry on every server; whole states
//	              after a restore and at the end; the order of items.
//
// # While faults are on
//
// Nothing is switched off. Where the contract makes an exception the judge makes the
// same one, no wider:
//
//   - Deadlines pass by the clock of whoever leads. A mark of class deadline is judged
//     by the time that its entry carries, and that time by the clock of the step that
//     proposed it ([Mistimed]). What leaders whose clocks differ make of one deadline
//     is no violation.
//   - G4's bound holds while there is a leader with a quorum: it is given to each drain
//     when the calm begins, and anew when the leader changes, a clock is set, the
//     strategy is, or an allocation lands on the node.
//   - What could be done need not be planned while something holds the drainer up: an
//     answer or a barrier it waits for, the wait after a failure or a refusal, which
//     [Options].RetryMax bounds, a look that the rate grants later, a clock that was
//     set and not looked at, and what the world says it holds back ([Truth]).
//   - A deadline may be late by the coalescing window, and until it is over nothing is
//     wanted of its node nor of the groups on it.
//   - With storage plugins that wait for all that stops, a drain has no bound.
//   - A look that the rate has granted may be taken late, so that one more than the
//     burst may come at once.
//
// # Cost
//
// An entry costs what it touches, and at most some rows of the whole state. A quiet
// point costs what is on draining nodes and their groups: tell of a sample of them.
package invariant
