// Package clustertest holds the fixtures that tests of several packages share: rows of a
// small cluster, and a [Replica] that applies messages to a real state machine.
package clustertest
