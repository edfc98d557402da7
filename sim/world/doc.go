// Package world runs a whole cluster in one goroutine: the real state
// store, state machine, drainer and scheduler, over a raft log and clients that
// are simulated, in virtual time.
//
// # Steps
//
// A [World] steps whoever was woken or is due, one after the other and always in
// the same order: what a script does at that time, the log, the drainer, the
// scheduler, the clients. When nobody is left the point is quiet, and the
// time moves on to when somebody is due. Nobody is stepped for any other reason,
// so a wake-up that somebody forgot to send shows as a world that stands still.
// Nothing sleeps, nothing runs beside it, and equal scripts run equally.
//
// # The log
//
// What is proposed is applied at a later step, in order, encoded and decoded on
// the way. Each write has a [Fate]: applied, applied late, surely not applied, or
// of unknown outcome, in three ways. [World.Elect] ends the leader's term at any
// step. What it had proposed and was not told of survives, and is then applied
// before anything of the next leader's, or is lost, as in raft.
//
// # Time
//
// The world begins at [Epoch]. Each server has a clock of its own, which may be
// wrong and may jump ([World.SetClock]).
//
// # What it is not
//
// It is no raft: there is one log, without votes and without messages. It does
// not explore: what happens is what the script says and what follows from it.
package world
