// Package shims replicates the cluster's changes with hashicorp/raft. It holds the messages and
// their encoding, the FSM that applies them to a [statestore.Store], and the proposers that begin
// writes and report their outcomes.
//
// # The path of a write
//
//	Propose ─▶ queue ─▶ raft.Apply ─▶ log of every server ─▶ FSM.Apply ─▶ store
//	   ▲                                                         │
//	   └───── Answer: applied | rejected | unknown ◀── Response ─┘
//
// A [Message] is one change. [Encode] encodes it as the data of a raft entry. On every server
// [FSM.ApplyEntry] decodes the entry, checks the message in its state, and writes the accepted
// parts in one transaction. It returns a [Response]: which parts took effect, which were refused,
// and why. The response to an impossible request is [Refused].
//
// [Proposer] is for all writers. [Apply] waits for one typed response. [DrainerApplier] and
// [SchedulerApplier] adapt it to the drainer and the scheduler.
//
// # Outcomes
//
// A proposer answers a write with one of three outcomes:
//
//	Applied   the entry was applied, at Index; Response lists what took effect
//	Rejected  no server has applied the entry and none will: you may retry
//	Unknown   it may be applied, now or later. Do not send it again: read the
//	          state behind a barrier, and decide from that
//
// [OutcomeOf] lists raft's errors with their outcomes, and for each the place in raft's source that
// shows the outcome. The proposer itself adds:
//
//	the message cannot be encoded            Rejected
//	no answer in Options.Timeout             Rejected if raft never got the entry, else Unknown
//	the proposer is closed                   the same
//	raft reports applied, but no response    Unknown: its FSM has stopped, or panicked
//	the FSM has stopped before a barrier     Unknown
//	the message needs a higher cluster       Rejected
//	version than the state has
//	raft reports applied, with a response    Unknown: raft has another FSM
//	that is none of this package
//	the FSM answers Refused                  Applied to a proposer; Rejected to the drainer and the scheduler,
//	                                         because it changed nothing and never will
//
// # Goroutines
//
// A proposer owns one goroutine, which alone calls raft, and one for each entry that raft has not
// answered, at most Options.MaxInFlight of these. [Proposer.Close] waits for the first and answers
// all open writes. The others end with raft's answers. An embedder waits for them with
// [Proposer.Settle] before it shuts raft down, because raft never answers some futures after that,
// and their goroutines never end. Replies are called from any of these goroutines, from timers, or
// from Close. An [FSM] owns no goroutine: raft's goroutine runs its methods and the observers of
// [FSMConfig].
//
// # Entries
//
// An entry names its type and the lowest cluster version that understands it. An entry that is
// broken, or that needs a newer build, stops the FSM, and no part of the entry is applied: a server
// that continued without it would have another state than the others. A stopped FSM applies nothing
// and takes no snapshot. [FSM.Stopped] and [FSM.Err] report this, and the owner shuts raft down.
// The log and the snapshots on disk stay as they are, and a build that understands the entry can
// continue from them. Types with the [IgnorableFlag] are the exception: a server that does not have
// the type skips the entry. No other input from outside stops the FSM.
//
// The FSM reads the state and the entry and nothing else: no clock, no randomness, no order of a
// map. So the same log gives the same state everywhere, and the proposer makes times and ids. Only
// the ids of evaluations that a change requires are computed, from the entry's index and the job.
// After each entry the index of the state is the entry's, even if the entry did nothing, and the
// history of the state contains the bytes of the entry: see [statestore.Snapshot.History].
//
// # The cluster version
//
// The state holds a cluster version ([cluster.Version]), which limits what may be written.
// [RaiseClusterVersion] raises it. A leader proposes this when every server of the cluster has
// reported, outside the log, that it understands the next version. A [Proposer] rejects a message
// that needs a higher version than the state has. So every server understands every entry, unless a
// server is downgraded after the version was raised. Such a server stops at the first entry or
// snapshot that it does not understand. A snapshot begins with the version of its state.
//
// Version 1 is commit 3dc2024, which has no versions: it panics at an entry of
// [RaiseClusterVersion], and it never reports that it understands a version. So a cluster with one
// such server stays at version 1. Every build writes entries and snapshots of version 1 byte for
// byte as 3dc2024 does.
//
// # A new cluster version
//
// A new message, a new field of a message or of a persisted row, and a new meaning of an old one
// each need a new version. All such changes of one release share one version:
//
//  1. Add one to [cluster.MaxVersion], and a line to its table.
//  2. Tag a new field `codec:",omitempty"`, so that entries and rows which do not use it do not
//     change. An empty list or map is also omitted, and decoded as nil: make it nil in
//     Canonicalize, and let nothing depend on the difference. Give the message a method needs
//     (version.go) that returns the new version when the field is set, or always for a new type.
//     Leave the field unset while [statestore.Snapshot.ClusterVersion] is lower: otherwise the
//     proposer rejects the message.
//  3. Where apply treats an old message in a new way, check [statestore.Txn.ClusterVersion] first,
//     and keep the old way below the new version.
//  4. go test ./shims ./statestore -run TestFormat -new-goldens writes the golden files of the new
//     version beside the old ones. Those of old versions stay: TestFormat still reads them.
//
// # Duties of another FSM
//
// A server with its own FSM checks each entry in the transaction that writes it, before it writes
// anything of the entry:
//
//   - an entry of [rules.Marks] through [rules.Recheck]: it writes only the returned marks and
//     evaluations, stores class, drain and the entry's time in each allocation's DesiredTransition,
//     and counts the marks in [cluster.Drain].Marked;
//   - an entry of [rules.Completions] through [rules.RecheckCompletions]: it ends only the returned
//     drains, each with its outcome;
//   - a scheduler's plan through a check that refuses to stop a migrating allocation whose mark was
//     withdrawn, see [scheduler.Check];
//   - a purge of a job without the rows of allocations that may run: it stops those that have not
//     ended, and keeps those that are lost and unconfirmed, see [statestore.PurgeJob];
//   - a deletion of ended rows through [collect.Apply], which keeps those that a drain, a plan or
//     a client still needs.
//
// It answers with the refused items, in the response of [drainer.Answer]. It moves the index of its
// state with every entry, even one that changes nothing, because a drainer waits for a state with
// the index of an answer. After a restore it enables the drainer again with the new state, see
// [FSMConfig].OnRestore.
package shims
