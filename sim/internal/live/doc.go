// Package live plays scenarios on three real servers: hashicorp/raft, the node drainer, the
// scheduler and the clients run with their own goroutines, channels and timers.
//
// The deterministic run (package world) runs the same decisions one after the other in one
// goroutine. It cannot find a mistake in the goroutines around them: a lost wake-up, a term that
// continues after its end, a data race. Here these goroutines run in a bubble of
// testing/synctest. The bubble's clock advances when all goroutines wait. Tests can use the race
// detector. The order of simultaneous events differs from run to run, so a run cannot be
// repeated exactly. Both kinds of run must end with the same final facts, the witness must
// report no finding, and all servers must have the same state.
//
//	operator ──▶ server's requests ──▶ raft ──▶ FSM of each server
//	clients  ──▶        ▲                          │ feed, snapshots
//	                    └── drainer, scheduler ◀───┘ of the leader
//
// # Faults
//
// A leader transfers its leadership, is cut off from the other servers, or crashes and restarts
// from a snapshot. To pause a server, the play cuts it off for that time: it receives and sends
// nothing, but its timers fire. For a late wake-up or a short pause of the leader, the drainer's
// goroutine sleeps after a step. Clients and nodes fail as in the deterministic run.
//
// # What cannot be played
//
// [Unplayable] lists the parts of a scenario that cannot be played. All goroutines of a process
// read one clock, and a play cannot set it. Raft alone decides the outcome of a write. A play
// cannot insert an event between a plan and its apply. It ignores the delays of the cluster
// directive, because raft has its own. But it collects ended work at the age of that directive. It
// always lasts for its full time.
package live
