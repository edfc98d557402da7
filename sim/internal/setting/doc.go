// Package setting converts the parts of a scenario into parts of a cluster: nodes, jobs,
// allocations, the behaviour of clients, and the configuration of drainers and of the collection.
//
// An [Armed] fault has a target and an end, and the simulator decides when it strikes.
// [Opportunities] are the opportunities of an entry for faults that perform operations. The package
// does not step, wait or draw by itself. Only an armed fault has a state.
package setting
