// Package witness counts the effects of drains again, from the states before and after each raft
// entry. It shares no code with the drainer that planned the marks, or with the re-check that
// accepted them, and it reads only the fields of the rows of package cluster, never their judging
// methods. If both agree, two independent programs have counted the same. Telemetry, the demo and
// the simulator use it. Begin with [New].
//
// # Entries
//
// The owner of the log calls [Witness.Observe] for each entry, in order, with the state
// before it, the state after it, and the names of the rows that the entry may have written
// ([Touched]). A name of an unchanged row costs time. A missing name hides a change:
// [Witness.Audit] reads a whole state and finds it. With the [Source] of an entry the witness also
// judges whether such an entry may mark allocations, or start, change or end drains.
//
// # Findings
//
// Each [Finding] names the guarantee that was broken, by its number in the contract:
//
//   - G1: a paced mark after which its group had fewer healthy allocations than
//     count − max_parallel. Marks of one entry are judged in allocation order,
//     each in the state left by those before it. A free mark on an allocation that is healthy, or
//     that was healthy and may recover.
//   - G1, in a group with a max_surge: a paced mark without a healthy replacement that its drain
//     had requested, or after which fewer were healthy than before, the replacement counted. More
//     requests than max_surge, or more marks after requests than max_parallel before the plan. An
//     allocation that stands by without an original in place, or the other way round.
//   - G2: a mark on a node that was not draining, or was draining for another
//     drain; a deadline mark before the deadline; a forced mark without force; a mark that the
//     request excludes; a mark that was changed or withdrawn without a cancel, or that a cancel
//     left; a revision that does not follow the strategy. The same for requests for replacements.
//   - G2, of entries with planned items: a deadline, forced or stage mark, or
//     an end, planned against another revision; a mark that was not planned.
//   - G3: a mark on an allocation whose stage had not come.
//   - G5: a drain that ended without a record, too early, or twice; an untrue outcome; a wrong count
//     of marks, of purged, stopping or unconfirmed allocations, or of volumes left; an allocation
//     that was confirmed too early; a collected row that a record counts; a deleted row of an
//     allocation that may run.
//   - G6: a mark that was lost. Of entries with planned items: a mark without an evaluation of its
//     job in the same entry.
//
// # What it counts
//
// Of each group that had an allocation on a draining node: the lowest healthy count since
// then, with its limit and when. Lowest means relative to the limit, so scaling a job down
// does not count. Of each drain: its marks by class, and its outcome.
//
// # Cost
//
// An entry costs the reads of its touched rows, and one pass over the allocations of each job with
// a touched group, once that group has had an allocation on a draining node; before that,
// nothing but these reads. [Options].MarksOnly saves the pass for all entries but those that
// mark. Memory grows with the groups, drains and marks, until another
// witness replaces it ([Resume]).
//
// A Witness starts no goroutine, reads no clock, and is not safe for concurrent use: its
// owner serializes the calls.
package witness
