// Package server is one server of a cluster: hashicorp/raft, the state that its
// log makes, and on the leader the node drainer and a scheduler. It is also the
// example to copy for embedding package drainer in a server of your own; what
// such a server owes the drainer is this:
//
//  1. An FSM that judges marks and completions again when it applies them
//     (package shims calls rules.Recheck), over a state that publishes its
//     changes (package statestore).
//  2. A proposer for the leader's own writes which clients cannot crowd out.
//  3. One goroutine that follows leadership: [Server.lead]. When leadership is
//     gained it enables the drainer with the present state, when it is lost it
//     disables it, and when the state is replaced by a snapshot it enables it
//     again with the new one. It asks for no barrier: the drainer and the
//     scheduler each wait for one of their own before they plan.
//  4. A scheduler that stops what is marked, places replacements, and looks again
//     when the FSM has applied something.
//  5. Evaluations in the same entry as the change that calls for them, made when it
//     is applied, in the state that it finds (package shims asks
//     [scheduler.NodeEvals] and [scheduler.ReportEvals]). Whoever proposes a change
//     does not know what it will concern: a plan that is on its way may place
//     something on a node that is about to go down, and nobody would look at its
//     job again.
//
// # Failure
//
// A server that meets a raft entry or a snapshot that it must not apply, such as one of a
// newer build, applies nothing of it, leaves raft and says so: see [Server.Failed]. What
// is on its disk stays as it is.
//
// # Goroutines
//
// Each server owns one goroutine, which follows leadership. On the leader there
// are two more, one of the drainer's and one of the scheduler's, and a third with
// [Config].WhileLeading; the first owns and joins them. One more runs while
// somebody waits in [Server.Consistent]. The two proposers own one each and one per
// entry in flight, and raft owns its own. [Server.Shutdown] ends all of them and waits
// for them.
//
// # Requests
//
// The methods in requests.go propose one change each, stamped with the time and
// the ids it needs, and wait for it to be applied here. What needs no entry, because
// it is so already or is not there, is said of a state that is surely the newest. They
// work on the leader; elsewhere the error wraps [shims.ErrRejected]. A [Group] forwards
// within one process, package agent between processes.
//
// # Reads
//
// [Server.Store] is the state as this server knows it, which may be behind.
// Whoever must not miss a write that was acknowledged waits for
// [Server.Consistent] first, on the leader.
package server
