// Package witness re-counts what a drain did from the states before and after
// each raft entry. It believes nobody: it shares no code with the drainer that
// planned the marks, nor with the re-check that let them pass, and it reads only
// the fields of the nouns in cluster, never their judging methods. Where it and
// they agree, two separate pieces of code have counted the same.
//
// # What it is shown
//
// Whoever applies the log calls [Witness.Observe] for each entry, in order, with
// the state before it, the state after it, and the names of what the entry may
// have written ([Touched]). A name too many costs time. A name too few hides
// something: [Witness.Audit] walks a whole state and finds what was hidden.
//
// # What it finds
//
// Each [Finding] names the guarantee that was broken, by its number in the
// contract:
//
//   - G1: a paced mark after which its group had fewer healthy allocations than
//     count − max_parallel. Marks of one entry are judged in allocation order,
//     each in the state left by those before it.
//   - G2: a mark on a node that was not draining, or was draining for another
//     drain; a deadline mark before the deadline; a forced mark without force.
//   - G2, of entries that say what was planned: a deadline, forced or stage mark, or
//     an end, planned against another revision.
//   - G3: a mark on an allocation whose stage had not come.
//   - G5: a drain that ended with an untrue outcome or count, without a record,
//     too early, or twice.
//   - G6, of entries that say what was planned: a mark without an evaluation of its
//     job in the same entry.
//
// # What it counts
//
// Of each group that had an allocation on a draining node: the lowest healthy
// count since then, with its limit and when. Lowest is meant relative to the
// limit, so that scaling a job down is no low. Of each drain: what it marked, by
// class, and what became of it.
//
// # Cost
//
// An entry costs a look at what it touched and one pass over the allocations of
// each job with a touched group, once that group has had an allocation on a
// draining node; before that, nothing but the look. [Options].MarksOnly saves the pass
// for all entries but those that mark. Memory grows with the groups
// and drains seen and with the marks made, until [Witness] is dropped and another
// goes on in its place by [Resume].
//
// A Witness starts no goroutine, reads no clock, and is not safe for concurrent
// use: its owner serialises.
package witness
