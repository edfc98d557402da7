// Package server is one server of a cluster: hashicorp/raft, the state built from its log, and on
// the leader the node drainer and a scheduler. Package agent adds sockets and disks to it. To embed
// package drainer in a server of your own, copy from this package. The drainer needs five things of
// such a server:
//
//  1. An FSM that checks marks and completions again when it applies them (package shims
//     calls rules.Recheck), over a state that publishes its changes (package statestore).
//  2. A proposer for the leader's own writes that requests of clients cannot fill.
//  3. One goroutine that follows leadership: [Server.lead]. When the server gains
//     leadership it enables the drainer with the present state. When it loses leadership
//     it disables the drainer. When a snapshot replaces the state it enables the drainer
//     again with the new one. It needs no barrier: the drainer and the scheduler each wait
//     for their own before they plan.
//  4. A scheduler that stops marked allocations, places replacements, and runs again when
//     the FSM has applied an entry.
//  5. Evaluations in the same entry as the change that needs them. The FSM makes them when
//     it applies the change, from the state at that time (package shims calls
//     [scheduler.NodeEvals] and [scheduler.ReportEvals]). The proposer of a change does not
//     have every job that it concerns: a plan in flight may place an allocation on a node
//     that is about to go down, and no other entry would evaluate that job.
//
// # Failure
//
// A server may meet a raft entry or a snapshot that it must not apply, such as one of a
// newer build. It then applies nothing of it, leaves raft and reports the error: see
// [Server.Failed]. Its disk stays as it is.
//
// # Goroutines
//
// Each server owns one goroutine, which follows leadership. On the leader that goroutine
// owns and joins those of the drainer and the scheduler, one that collects ended work, one that
// releases claims, one with [Config].Controllers and one for each call of a controller, and one with
// [Config].WhileLeading. One more runs while a caller waits in [Server.Consistent]. The two
// proposers own one each and one per entry in flight, and raft owns its own.
// [Server.Shutdown] ends all of them and waits for them.
//
// # Requests
//
// Each method of [Requests] proposes one change with the time and the ids that it needs,
// and waits until the change is applied here. A request that needs no entry, because the
// change exists already or its subject does not exist, is answered from the newest state.
// The methods work on the leader; on other servers the error wraps [shims.ErrRejected]. A
// [Group] forwards requests within one process, package agent between processes.
//
// # Reads
//
// [Server.Store] is the state of this server, which may be behind. A reader that needs
// every acknowledged write calls [Server.Consistent] on the leader first.
package server
