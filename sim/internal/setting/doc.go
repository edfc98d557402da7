// Package setting makes the parts of a cluster from a scenario: nodes, jobs, allocations,
// requests, the behaviour of clients and the configuration of drainers. The stepped player and
// the player with goroutines both begin here, so they play the same.
//
// An [Operator] makes the requests of operators. A player writes them by [Requests]. An [Armed]
// fault knows its target and whether it has ended. The player decides when it strikes.
// [Provocations] are the opportunities of an entry for faults with a request of an operator.
// The package does not step or wait, draws nothing, and keeps no other state.
package setting
