// Package world runs a whole cluster in one goroutine and in virtual time: the real state
// store, state machine, drainer and scheduler, over a simulated raft log and simulated clients.
//
//	w, err := world.New(world.Options{Seed: 7, Servers: 3, Views: true})
//	w.At(w.Now().Add(time.Minute), func() error { return w.Servers.Elect(true) })
//	idle, err := w.Run(w.Now().Add(time.Hour))
//
// # Parts
//
// A [World] is made of parts, each in files of its own:
//
//   - [Loop]: the virtual time, the queue of events, the hash of the run (loop.go)
//   - [Servers]: the servers, their clocks and states, the leader's drainer and scheduler, and
//     elections (servers.go, leadership.go, leader_actors.go, election.go, reader.go)
//   - [RaftLog]: the committed entries, the writes in flight and their fates (log.go)
//   - the clients of all nodes (fleet.go)
//   - [Operator]: requests (operator.go)
//   - [Faults]: the armed faults. Each part offers its own opportunities to them (faults.go)
//   - [Setup]: direct writes before the run (setup.go)
//   - [Observer]: calls for everything that happens (observer.go)
//
// # Events and ties
//
// The loop has one queue of events, ordered by time, then by tie, then by when they were
// queued. The tie is drawn from the seed when an event is queued. So each seed has its own
// order of the events of one time. Without a seed all ties are zero.
//
// An event runs a function ([Loop.At]) or steps an actor: the log, a drainer, the scheduler or
// the clients. An actor is stepped only if it was woken or is due: if product code forgets a
// wake-up, the world stands still. Nothing happens between two steps. When no event is left at
// a time, the point is quiet ([Loop.OnQuiet]), and the time moves on. After a long pause,
// [Loop.OnStill] is called right before the next event.
//
// Nothing sleeps and there is no other goroutine. Equal scripts with equal seeds run equally
// on every machine: [Loop.Hash] covers every step, every entry and every strike of a fault.
//
// # Streams
//
// Each random decision has its own stream: the ties of each kind of step, the delays of each
// source's writes, the chance and the delay of each fault, the behaviour of each allocation
// ([Stream]). One more draw from a stream shifts no other.
//
// # Servers
//
// Each server has a clock, which may be wrong and may jump, and a process, which may be paused.
// One server leads. The others fall behind, and catch up when they lead and an entry of their
// term is committed. They never go back to an older state than they have read. As replicas,
// each server applies the log to its own store. As views, they share one store, and newer
// states are hidden from a server's drainer and its feed.
//
// # The log
//
// There is one log. A proposed write is applied at a later step, in order, after encoding and
// decoding. Its [Fate] says whether it is applied, and whether its writer knows. An election
// ([Servers.Depose]) ends the leader's term between any two steps. All, none, or the first few
// of its writes in flight survive: they are committed before any entry of the next leader. So
// the terms of the entries never decrease, and a write that a deposed leader proposes is never
// committed.
//
// # Faults
//
// Faults have the names of [scenario.Faults] and are armed one by one ([Faults.Arm]). A part
// offers every opportunity: a proposed write, a sent wake-up, a started term, a new allocation.
// The first armed fault of the name that matches the target and is lucky strikes.
// [Faults.End] ends all of them and their effects, except those of [CutOff]. The effect of a
// fault on a node ends even if the write that reverts it fails: it is repeated.
//
// # Limits
//
// The log is not raft: there are no votes, no messages, and no time without a leader. Where
// raft has several ways with equal effects on the writers, the log has one: unanswered
// requests of clients and operators go to the next leader; a deposed leader that does not know
// it gets no answers, and its scheduler ends at once; clients see the newest state of any
// server; only elections make servers catch up. What raft excludes, the log excludes: an entry
// of an old term after one of a newer term, an applied entry that disappears, entries out of the
// order in which their leader proposed them, an answer "applied" before the apply.
//
// A world does not explore. The script, the seed and the faults decide everything.
package world
