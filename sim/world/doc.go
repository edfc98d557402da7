// Package world runs a whole cluster in one goroutine: the real state
// store, state machine, drainer and scheduler, over a raft log and clients that
// are simulated, in virtual time.
//
//	w, err := world.New(world.Options{Seed: 7, Servers: 3, Views: true})
//	w.At(w.Now().Add(time.Minute), func() error { return w.Elect(true) })
//	idle, err := w.Run(w.Now().Add(time.Hour))
//
// # Events and ties
//
// A [World] has one queue of events, ordered by time, then by tie, then by first come
// first served. A tie is drawn when an event is queued: so what happens at one time
// happens in an order that the seed decides, and with another seed in another. Without
// a seed there are no ties.
//
// An event has happen what was asked for ([World.At]), or steps an actor: the log, a
// drainer, the scheduler, the clients. An actor is stepped when it was woken or is due,
// and for no other reason: a wake-up that somebody forgot to send shows as a world
// that stands still. Between two steps nobody does anything. When nobody is left at a
// time the point is quiet ([World.OnQuiet]), and the time moves on. If it moves on by
// long, somebody may look at what it was all about just before it ends ([World.OnStill]).
//
// Nothing sleeps, nothing runs beside it, and equal scripts with equal seeds run
// equally, on every machine: [World.Hash] is of every step, every entry and every
// strike of a fault.
//
// # Streams
//
// What is drawn is drawn from a stream of its own: the ties of each kind of step, how
// long the writes of each source take, each fault's chance and delays, how each
// allocation fares ([Stream]). One more draw from one of them shifts no other.
//
// # Servers
//
// Each server has a clock of its own, which may be wrong and may jump, and a process,
// which may stand still. One leads. The others fall behind, and catch up when they
// lead and something of theirs is committed; they never forget what they have seen.
// As replicas they apply the log to a store each; as views they share one, and what
// they have not seen is kept from them: neither their drainer's looks nor its feed
// show it.
//
// # The log
//
// There is one log. What is proposed is applied at a later step, in order, encoded and
// decoded on the way. Each write has a [Fate]: applied, applied late, surely not
// applied, not taken, or of unknown outcome, in three ways. [World.Depose] ends the
// leader's term at any step. Of what it had in flight all survives, or nothing, or the
// first few; that is in the log before anything of the next leader's. So the terms of
// the entries never go down ([World.Log]), and what a deposed leader proposes, who may
// not know for a while that he is, never is an entry.
//
// # Faults
//
// Faults go by the names of [scenario.Faults] and are armed one by one ([World.Arm]).
// Whatever could go wrong in one of the ways is an opportunity: a write proposed, a
// wake-up sent, a term begun, an allocation seen. The first armed fault of the name
// that is on such a target, and is lucky, takes it, and whoever asked ([World.OnStrike])
// is told. [World.Calm] ends them all: none strikes any more, and what they have done is
// undone, or comes at once if it was only late. Only what is [Outside] stays broken. What
// one has begun is ended however often the write that ends it fails.
//
// # What it is not
//
// It is no raft: no votes, no messages, no time without a leader. Where raft would
// do the same with a delay, or has ways that make no difference to who writes, it has
// one of them: writes of clients and operators that nobody has answered go to the next
// leader, as if they had been sent again; a deposed leader that does not know gets no
// answers, and its scheduler is gone at once; clients see the newest state of any
// server; nothing but elections makes a server catch up. What raft cannot do it does
// not: no entry of an old term after one of a newer, none applied and then not, none
// out of the order in which its leader had proposed them, none said to be applied before it
// is.
//
// It does not explore: what happens is what the script, the seed and the faults say,
// and what follows from it.
package world
