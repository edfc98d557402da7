// Package setting turns what a scenario says into what a cluster is made of: nodes,
// jobs, allocations, requests, the behaviour of clients and the configuration of
// drainers. Whoever plays a scenario, stepped or with goroutines, begins here, so
// that both play the same.
//
// An [Operator] does what operators do, by [Requests] that whoever plays has written; an
// [Armed] fault says what it is on and whether it has ended, and whoever plays when it
// strikes; [Provocations] are the opportunities of an entry for faults that have something
// operated. Nothing here steps, waits, draws by itself or keeps a state but for that.
package setting
