// Package statestore holds the state of the cluster in go-memdb tables, reads it
// in consistent snapshots and writes it in transactions, one for each raft entry.
package statestore
