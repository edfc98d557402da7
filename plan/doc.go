// Package plan answers what a drain would do, before it begins.
//
// A play takes a copy of the state of a cluster and drains nodes of it in virtual time. The drainer, the
// scheduler and the FSM are those of the servers: their steps are functions of a state and a time. Only the
// clients are a model, package client/simclient, with the times of times.go. So a change of the drainer
// changes its plans.
//
//	                  ┌──────────────── one goroutine, virtual time ────────────────┐
//	Store ── Fork ──▶ │ copy ──▶ drainer.Term ──▶ log ──▶ FSM ──▶ copy                │ ──▶ Result
//	                  │   └────▶ scheduler ───────▶│       tally counts each entry   │
//	                  │   └────▶ simulated clients ▶│                                 │
//	                  └─────────────────────────────────────────────────────────────┘
//
// [Play] plays once. [Answer] plays several times, each time with other times of the clients, and returns the
// median, a range, and what other questions add: a deadline that takes nothing, and the allocations that would
// move twice.
//
// A play of 500 allocations or more rounds the times of the clients to half a second, so that it makes fewer steps.
//
// # Promises
//
//	F1  same code  A plan is made by the code that drains.
//	F2  harmless   A plan reads one state and writes nothing. It is bounded in virtual time, in entries and in
//	               steps without either, and ends with the context of its caller.
//	F3  honest     Over worlds with observed times and drains of 10 s or more, at least 90 % of unseen plays
//	               end within the range of 39 plays, and the medians differ by at most 15 % in the mean.
//	               nodedrain sim plans measures it.
//
// # What a play does not do
//
// A play changes no store but its copy, which shares all rows with the original. It starts no goroutine, reads
// no clock, and ends with the context of its caller, or at the bounds of [Settings]. Nodes do not go down,
// writes do not fail, and the work of batch jobs runs until it is stopped.
package plan
