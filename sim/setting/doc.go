// Package setting turns what a scenario says into what a cluster is made of: nodes,
// jobs, allocations, requests, the behaviour of clients and the configuration of
// drainers. Whoever plays a scenario, stepped or with goroutines, begins here, so
// that both play the same.
//
// It decides nothing and writes nothing.
package setting
