// Package setting converts the parts of a scenario into parts of a cluster: nodes, jobs,
// allocations, requests, the behaviour of clients, and the configuration of drainers and of the
// collection. Both simulators use it and so play the same scenario: package sim, which steps, and
// package live, which has goroutines.
//
// An [Operator] performs operations with [Requests], and the simulator writes them. An [Armed]
// fault knows its target and its end, and the simulator decides when it strikes. [Opportunities]
// are the opportunities of an entry for faults that perform operations. The package does not step,
// wait or draw by itself. Only an armed fault has a state.
package setting
