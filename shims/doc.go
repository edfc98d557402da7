// Package shims carries the cluster's changes through hashicorp/raft: messages and their
// encoding, the FSM that applies them to a [statestore.Store], and the proposers that begin
// writes and report their outcomes.
//
// # The way of a write
//
//	Propose ─▶ queue ─▶ raft.Apply ─▶ log of every server ─▶ FSM.Apply ─▶ store
//	   ▲                                                         │
//	   └───── Answer: applied | rejected | unknown ◀── Response ─┘
//
// A [Message] is one change. [Encode] writes it as the data of a raft entry, [FSM.ApplyEntry]
// reads it back on every server, judges it in the state that it finds, and writes what holds
// in one transaction. Its answer is a [Response]: which parts took effect, which were
// refused, and why. The answer to an impossible request is [Refused].
//
// [Proposer] is for all writers. [Apply] waits for one typed response. [DrainerApplier] and
// [SchedulerApplier] adapt it to the drainer and the scheduler.
//
// # Outcomes
//
// A proposer answers a write with one of three outcomes:
//
//	Applied   the entry was applied, at Index; Response says what came of it
//	Rejected  no server has applied the entry and none will: begin again
//	Unknown   it may be applied, now or later. Do not send it again: read the
//	          state behind a barrier, and decide from that
//
// The table of raft's errors, each with the place in raft's source from which its outcome
// follows, is at [OutcomeOf]. Besides those, by the proposer itself:
//
//	the message cannot be encoded            Rejected
//	no answer in Options.Timeout             Rejected if raft was never given the entry, else Unknown
//	the proposer is closed                   the same
//	raft says applied, and has no response   Unknown: its FSM has stopped, or panicked
//	the FSM has stopped before a barrier     Unknown
//	the message needs a higher cluster       Rejected
//	version than the state has
//	raft says applied, with a response that  Unknown: the FSM is another
//	is none of this package
//	the FSM answers Refused                  Applied to a proposer; Rejected to the drainer and the scheduler,
//	                                         since nothing changed and nothing will
//
// # Goroutines
//
// A proposer owns one goroutine, which alone calls raft, and one for each entry that raft has
// not answered, at most Options.MaxInFlight of them in all. [Proposer.Close] joins the first
// and answers everything. The others end with raft's answers, which an embedder waits for
// with [Proposer.Settle] before it shuts raft down: raft leaves some futures without an
// answer then, and their goroutines with them. Replies are called from any of these
// goroutines, from timers, or from Close. An [FSM] owns none: its methods, and the observers
// of [FSMConfig], run on raft's.
//
// # Entries
//
// An entry says its type and the lowest cluster version that understands it. One that is
// broken, or that needs a newer build, stops the FSM with no part of it applied: a server
// that continued without it would have another state than the others. The FSM applies nothing
// from then on, takes no snapshot, and says why by [FSM.Stopped] and [FSM.Err]; its owner
// shuts raft down. The log and the snapshots on disk stay as they are, and a build that
// understands the entry goes on from there. The exception are types with the [IgnorableFlag],
// which a server that does not know them skips. No other input from outside stops the FSM.
//
// Applying an entry reads the state and the entry and nothing else: no clock, no randomness,
// no order of a map. So the same log gives the same state everywhere, and the proposer makes
// times and ids. Only the ids of evaluations that a change requires follow from the entry's
// index and the job. After each entry the index of the state is the entry's, also
// if the entry did nothing.
//
// # The cluster version
//
// The state holds a cluster version ([cluster.Version]). It names what may be written.
// [RaiseClusterVersion] raises it, and is proposed when every server of the cluster has said,
// outside the log, that it understands the next version. A [Proposer] rejects a message that
// needs a higher version than the state has. So no server meets an entry that it does not
// understand, unless it is downgraded after the version was raised: then it stops at the
// first such entry or snapshot. A snapshot begins with the version of its state.
//
// Version 1 is commit 3dc2024, which knows no versions: it panics at an entry of
// [RaiseClusterVersion], and it never says that it understands one. So a cluster with one
// such server stays at version 1. Entries and snapshots of version 1 are byte for byte those
// of 3dc2024, whichever build writes them.
//
// # A new cluster version
//
// A new message, a new field of a message or of a row that a snapshot holds, and another
// meaning of an old one each need a new version, one for all that a release brings:
//
//  1. Add one to [cluster.MaxVersion], and a line to its table.
//  2. Tag a new field `codec:",omitempty"`, so that entries and rows which do not
//     use it stay as they were. An empty list or map is left out, too, and read back
//     as nil: make it nil in Canonicalize, and let nothing depend on the difference. Give the message a method needs (version.go) that
//     returns the new version when the field is set, or always for a new type. Leave
//     the field unset as long as [statestore.Snapshot.ClusterVersion] is lower: the
//     proposer rejects the message otherwise.
//  3. Where apply does more or other than before with an old message, ask
//     [statestore.Txn.ClusterVersion] first, and do as before below the new version.
//  4. go test ./shims ./statestore -run TestFormat -new-goldens writes the golden
//     files of the new version beside the old ones. Those of old versions stay, and
//     TestFormat reads them for ever.
//
// # What an FSM of your own must do
//
// A server with a log or messages of its own applies, in the transaction that writes it and
// before anything of it is written:
//
//   - an entry of [rules.Marks] through [rules.Recheck]: it writes the marks
//     and evaluations that are returned and no others, stores class, drain and
//     the entry's time in each allocation's DesiredTransition, and counts them in
//     [cluster.Drain].Marked;
//   - an entry of [rules.Completions] through [rules.RecheckCompletions]: it
//     ends the drains that are returned, each with its outcome, and no others;
//   - a scheduler's plan through a check that refuses the stop of a migrating
//     allocation whose mark is gone, see [scheduler.Check];
//   - a deletion of ended rows through [collect.Apply], which keeps those that a drain, a plan or
//     a client still needs.
//
// It answers with the refused items, in the response of [drainer.Answer]. It moves the index
// of its state with every entry, also with one that changes nothing: a drainer that gets an
// answer with an index waits for a state that shows it. And it enables the drainer again with
// the new state after a restore, see [FSMConfig].OnRestore.
package shims
