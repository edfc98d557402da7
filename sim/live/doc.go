// Package live plays scenarios with goroutines: the real node drainers, schedulers and
// clients, each on its own, that wait for real channels and real timers.
//
// The deterministic run (package world) steps the same decisions one after the other. It
// cannot find what is wrong with the goroutines around them: a wake-up that is sent and
// not received, a term that goes on after its end, two that write to one thing. Here
// these run, in a bubble of testing/synctest in which time passes when everybody waits,
// and above all with the race detector. What happens at one time happens in any order,
// another at every run, so nothing can be replayed. What must hold is that both come to
// the same final facts, and that a witness who counts again finds nothing.
//
// # What runs
//
//	operator ──▶ contract: the log, on one goroutine ──▶ FSM of each server
//	clients  ──▶        ▲                                    │ feed, snapshots
//	                    └── NodeDrainer, Scheduler.Run ◀─────┘ of each leader
//
// The log is raft's contract without raft, as in the deterministic run: what is
// proposed is applied in order, late, or not, and answered truly or not at all. It is
// written a second time, for many who propose at once, and shares nothing with the
// first but names.
//
// With [Options].Raft three real servers (package server) over hashicorp/raft play the
// scenario instead. Leaders hand over, are cut off, and crash and begin again from a
// snapshot, in the words that scenarios have for elections.
//
// # What cannot be played
//
// [Unplayable] says it. Clocks cannot be set, neither at a time nor by a fault: all
// goroutines of a process read one. A server that is paused, or cut off for good, hears and
// says nothing, but its timers fire. What makes a run short has no effect here: clients
// gather nothing, and a run goes on after its last drain. Over raft much more cannot be
// played: nobody can come between it and its state machine, and its servers are cut off
// and paused in elections only.
package live
