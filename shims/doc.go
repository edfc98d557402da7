// Package shims carries the cluster's changes through hashicorp/raft: messages
// and their encoding, the FSM that applies them to a [statestore.Store], and the
// proposers that begin writes and tell what became of them.
//
// # The way of a write
//
//	Propose ─▶ queue ─▶ raft.Apply ─▶ log of every server ─▶ FSM.Apply ─▶ store
//	   ▲                                                         │
//	   └───── Answer: applied | rejected | unknown ◀── Response ─┘
//
// A [Message] is one change. [Encode] writes it as the data of a raft entry,
// [FSM.ApplyEntry] reads it back on every server, judges it in the state that it
// finds, and writes what holds in one transaction. What it has to say of the
// message is its [Response]: what took effect, what was refused and why. A
// message that asks for what cannot be is [Refused], which is an answer as any
// other.
//
// [Proposer] is for everyone who writes; [Ask] waits for one typed response.
// [RaftApplier] and [SchedulerApplier] are the same in the words of the drainer
// and the scheduler.
//
// # Outcomes
//
// What a proposer says of a write is one of three, and they are never mixed:
//
//	Applied   the entry was applied, at Index; Response says what came of it
//	Rejected  no server has applied the entry and none will: begin again
//	Unknown   it may be applied, now or later. Do not send it again: read the
//	          state behind a barrier, and decide from that
//
// The table of raft's errors, each with the place in raft's source from which
// its outcome follows, is at [OutcomeOf]. Besides those, by the proposer itself:
//
//	the message cannot be encoded            Rejected
//	no answer in Options.Timeout             Rejected if raft was never given the entry, else Unknown
//	the proposer is closed                   the same
//	raft says applied, and has no response   Unknown: its FSM panicked
//	raft says applied, with a response that  Unknown: the FSM is another
//	is none of this package
//	the FSM answers Refused                  Applied to a proposer; Rejected to the drainer and the scheduler,
//	                                         since nothing changed and nothing will
//
// # Goroutines
//
// A proposer owns one goroutine, which alone calls raft, and one for each entry
// that raft has not answered, at most Options.MaxInFlight of them in all.
// [Proposer.Close] joins the first and answers everything. The others end with
// raft's answers, which an embedder waits for with [Proposer.Settle] before it
// shuts raft down: raft leaves some futures without an answer then, and their
// goroutines with them. Replies are called from any of these goroutines, from
// timers, or from Close. An [FSM] owns none: its methods, and the observers of
// [FSMConfig], run on raft's.
//
// # Entries
//
// An entry says its type and the version of its format. One that is unknown or
// broken stops the FSM with a panic, and so every server alike, with no part of
// it applied: a server that went on without it would have another state than
// the rest. The exception are types with the [IgnorableFlag], which a server that
// does not know them skips. Nothing else that comes from outside stops anything.
//
// Applying an entry reads the state and the entry and nothing else: no clock, no
// randomness, no order of a map. So the same log gives the same state
// everywhere, and times and ids are made by whoever proposes; but the ids of
// evaluations that a change calls for follow from the entry's index and the job.
// Whatever an entry does, the index of the state is the entry's afterwards.
//
// # What an FSM of your own must do
//
// A server with a log or messages of its own applies, in the transaction that
// writes it and before anything of it is written:
//
//   - an entry of [drainer.Marks] through [drainer.Recheck]: it writes the marks
//     and evaluations that are returned and no others, stores class, drain and
//     the entry's time in each allocation's DesiredTransition, and counts them in
//     [cluster.Drain].Marked;
//   - an entry of [drainer.Completions] through [drainer.RecheckCompletions]: it
//     ends the drains that are returned, each with its outcome, and no others;
//   - a scheduler's plan through a check that refuses the stop of a migrating
//     allocation whose mark is gone, see [scheduler.Check].
//
// It answers with what was refused, in [drainer.Answer].Refused. It moves the
// index of its state with every entry, also with one that changes nothing: a
// drainer that is told of an entry at an index waits for a state that shows it.
// And it begins the drainer anew with the new state when one is restored, see
// [FSMConfig].OnRestore.
package shims
