// Package demo runs a cluster in one process and drains nodes of it: three raft servers with
// the drainer and a scheduler on the leader, simulated clients, and a generated cluster or a real one
// (package openb). It drains several nodes at once, kills the leader when half of the
// work is done, and reports the result, counted by a witness that shares no code with the
// drainer.
//
// [Run] runs the demonstration; "nodedrain demo" is its command.
//
// # Simulated time
//
// No simulated task really runs: the clients wait for as long as it would take, divided by
// [Config].TimeScale. The times in the state are real. Jobs are registered with their delays
// scaled down, and the drainer's margins are scaled alike. Raft's elections and the drainer's
// own work are not scaled.
//
// # Choice of nodes
//
// A fixed rule chooses the nodes once everything runs. Of the nodes that run a service or
// batch allocation, ordered by id, it takes every k-th, so that the number is as configured.
// Nodes with batch work drain with a deadline, and so does every other one of the others.
//
// # Goroutines
//
// Run owns the goroutines of its servers and clients. All of them have ended when it returns.
package demo
