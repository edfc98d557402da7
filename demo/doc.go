// Package demo runs a cluster in one process and drains it: three raft servers
// with the drainer and a scheduler on the leader, simulated clients, a generated
// cluster or a real one (package openb). It drains some nodes at once, kills the leader
// when half of the work is done, and reports what came of it, counted by a
// witness that shares no code with the drainer.
//
// [Run] is the whole of it; "nodedrain demo" is its command.
//
// # Simulated time
//
// Tasks do not run, they are waited for, and [Config].TimeScale says how much
// faster than real ones. The times in the state are real: jobs are registered
// with their delays scaled down, and the drainer is given margins scaled alike.
// Raft's elections and the drainer's own work take what they take.
//
// # What is drained
//
// Nodes are chosen by a fixed rule once everything runs: of those that run a
// service or batch allocation, by id, every k-th, so that there are as many as
// asked for. Those with batch work drain under a deadline, and so does every
// other one of the rest.
//
// # Goroutines
//
// Run owns those of its servers and clients, and has ended all of them when it
// returns, however it ends.
package demo
