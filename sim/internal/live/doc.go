// Package live plays scenarios on three real servers: hashicorp/raft, the node drainer, the
// scheduler and the clients, each with its own goroutines, channels and timers.
//
// The deterministic run (package world) steps the same decisions one after the other. It
// cannot find a mistake in the goroutines around them: a wake-up that is lost, a term that
// continues after its end, two goroutines that write to one field. Here these goroutines run
// in a bubble of testing/synctest, whose clock advances when all of them wait. The race
// detector watches them. Events of one time happen in any order, and in another order in the
// next run, so no run can be repeated exactly. Both kinds of run must end with the same final
// facts, the witness must find nothing, and all servers must have the same state.
//
//	operator ──▶ server's requests ──▶ raft ──▶ FSM of each server
//	clients  ──▶        ▲                          │ feed, snapshots
//	                    └── drainer, scheduler ◀───┘ of the leader
//
// # Faults
//
// A leader hands over, is cut off from the others, or crashes and starts again from a
// snapshot. A paused server is cut off for as long: it hears and sends nothing, but its
// timers fire. A wake-up that comes late, and a leader that pauses for a moment, are played
// as a drainer whose goroutine sleeps after a step. Clients and nodes fail as in the
// deterministic run.
//
// # What cannot be played
//
// [Unplayable] says what of a scenario cannot be played. The goroutines of a process read
// one clock, which cannot be set. A write's outcome is raft's own, and nothing happens
// between a plan and its apply on purpose. The delays of the cluster directive are ignored:
// raft takes as long as it takes. A play does not end before its time.
package live
