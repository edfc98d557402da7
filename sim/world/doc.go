// Package world runs a whole cluster in one goroutine and in virtual time: the real state
// store, state machine, drainer and scheduler, over a simulated raft log and simulated clients.
//
//	w, err := world.New(world.Options{Seed: 7, Servers: 3, Views: true})
//	w.At(w.Now().Add(time.Minute), func() error { return w.Servers.Elect(true) })
//	idle, err := w.Run(w.Now().Add(time.Hour))
//
// # Parts
//
// A [World] has these parts:
//
//   - [Loop]: the virtual time, the queue of events, the hash of the run (loop.go)
//   - [Servers]: the servers, their clocks and states, the leader's drainer and scheduler, and
//     elections (servers.go, leadership.go, election.go, reader.go)
//   - [RaftLog]: the committed entries, the writes in flight and their fates (log.go)
//   - the clients of all nodes: simulated ones (fleet.go), or the real client of each node over
//     scripted drivers (cores.go, core_node.go, core_faults.go), devices (core_devices.go) and
//     storage plugins (core_storage.go, core_claims.go)
//   - the claims of volumes: those that the leader frees, and the controllers that it calls (volumes.go,
//     controllers.go)
//   - [Operator]: requests and other operations (operator.go, requests.go)
//   - [Faults]: the armed faults. The other parts check at each opportunity whether one strikes
//     (faults.go)
//   - [Setup]: direct writes before the run (setup.go)
//   - [Observer]: functions that the world calls at each entry, step, write and strike
//     (observer.go)
//
// # Events and ties
//
// The loop has one queue of events. It orders them by time, then by tie, then by the order in
// which they were queued. The tie is a random number that the loop draws from the seed when it
// queues the event. So each seed has its own order of the events of one time. Without a seed
// all ties are zero.
//
// An event runs a function ([Loop.At]) or steps an actor: the log, a drainer, the scheduler or
// the clients. The loop steps an actor only after a wake-up, or when the actor's timer is due.
// So if product code forgets a wake-up, the drain makes no progress and the run fails. Nothing
// happens between two steps. When no event is left at a time, the loop calls the function of
// [Loop.OnQuiet] and moves the time on. Before the end of a pause of five seconds or more, it
// calls the function of [Loop.OnStill]. A pause in which only clients step is a silence on the
// servers: [Loop.OnSilence] gets the end of it.
//
// The world does not sleep and starts no goroutine. The same script with the same seed gives
// the same run on every machine. [Loop.Hash] is a hash of every step, entry and strike.
//
// # Streams
//
// Each random decision has its own stream of random numbers ([Stream]): the ties of each kind
// of step, the delays of each source's writes, the probability and the delay of each fault, the
// behaviour of each allocation. An additional draw from one stream does not change the numbers
// of another.
//
// # Servers
//
// Each server has a clock, which may be wrong and may jump, and a process, which may be paused.
// One server leads. A server that does not lead applies no entries. After its election it may
// still read an old state: it catches up when an entry of its term is committed. As a leader,
// a server never reads an older state than it has read before.
//
// Servers are replicas or views ([Options].Views). Each replica applies the log to its own
// store. Views share one store. The world hides newer states from a view that is behind.
//
// # The log
//
// There is one log. It encodes each proposed write, and applies the decoded write at a later
// step, in order. The [Fate] of the write decides whether the log applies it, and which answer the
// writer gets. An election ([Servers.Depose]) ends the leader's term between any two steps.
// All, none, or the first few of its writes in flight survive: they are committed before any
// entry of the next leader. So the terms of the entries never decrease, and a write that a
// deposed leader proposes is never committed.
//
// # Faults
//
// Faults have the names of [scenario.Faults]. [Faults.Arm] arms one. An opportunity is, for
// example, a proposed write, a sent wake-up, a started term or a new allocation. At each
// opportunity, the first armed fault strikes that has the right name, matches the target and
// passes the draw of its probability. [Faults.End] ends all faults and their effects, except
// those of [CutOff]. If the write that reverts an effect on a node fails, the world sends it
// again.
//
// # Limits
//
// The log is not raft: there are no votes, no messages, and no time without a leader. Where raft
// can do several things that a writer cannot distinguish, the log does one of them:
//
//   - Unanswered requests of clients and operators go to the next leader.
//   - A deposed leader whose drainer still steps gets no answers. Its scheduler ends at once.
//   - Clients read the newest state of any server.
//   - A server catches up only after it was elected.
//
// The log never does what raft never does: commit an entry of an old term after one of a newer
// term, lose an applied entry, commit the entries of a leader in another order than it proposed
// them, or answer "applied" before the apply.
//
// A world does not search for bugs. The script, the seed and the faults decide the whole run.
package world
