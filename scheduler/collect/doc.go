// Package collect decides which ended rows are deleted from the state: the garbage collection. The
// leader proposes rows with a [Collector], and every FSM checks them.
//
// # Rules
//
// The leader proposes rows, and the state machine judges each of them in the state in which the
// entry is applied. Both use the rules of this package. A row stays until the time that the entry
// names for its kind, counted from its last write, and as long as one of these needs it:
//
//   - an allocation that has not ended stays; so does one that holds a slot of its group, that
//     waits for its replacement, or whose failures the scheduler counts for its replacement; one
//     that a running drain has marked, or whose replacement keeps a slot of a drain; a lost
//     one whose node may come back and still run it; and one that claims a volume;
//   - an allocation of a stopped job that would count again if the job were started again stays
//     until the job may go;
//   - an evaluation stays while it is open, while the blocked evaluation that it made is open,
//     while an allocation names it, and while it is the newest of its job;
//   - a job stays unless it is stopped and only one evaluation of it is left, or unless it is a
//     batch job, all its allocations have ended, and no evaluation of it is open. A finished batch
//     job goes in one piece: without some of its allocations it would run again.
//
// So a running job keeps one evaluation. The size of the state is bounded by the live rows, the
// rows that ended recently, and the records of drains, which have limits of their own. Sysbatch
// jobs stay until they are stopped: a node that joins later still has to run them.
//
// # Rounds
//
// A [Round] reads a state and cuts what may be deleted into requests of a bounded size. It
// takes allocations first, then evaluations, then jobs, because a row may be all that keeps
// the next. A [Collector] begins a round at every interval. Both are steps: they neither block
// nor read a clock, and their caller writes each request before it takes the next one.
package collect
