// Package cluster holds the nouns of a cluster that drains its nodes: nodes and
// the drain of a node, jobs and their task groups, allocations, evaluations and
// plans. It does no I/O, reads no clock and starts no goroutine.
//
// # Words
//
// An allocation is one placed copy of a task group on one node. A group is the
// set of allocations of one task group of one (namespace, job), wherever they
// run; see [GroupKey].
//
// A drain is one episode in the life of a node: from the write that sets the
// node's drain strategy to its one [Outcome]. It has a [DrainID] that lasts the
// whole episode, and a [Revision], the raft index of the last write to its
// strategy. A node is draining exactly while [Node.Drain] is not nil.
//
// A mark requires an allocation to leave its node. It is written through raft:
// [DesiredTransition].Migrate with the id of its drain and its [MarkClass]. The mark alone moves
// nothing. The job's evaluation makes a scheduler stop and replace the allocation.
//
// The allocations of a draining node leave in the order of their [Stage]:
// consumers (service, batch and sysbatch allocations), then system allocations,
// then storage plugins.
//
// # Ownership
//
// All rows that come from a state store are shared by all readers. Never write to them. Copy the
// row, edit the copy, insert the copy. The comment of each Copy method states how deep it goes.
//
// # Wire form
//
// Field names are those of the compatible API. Durations count nanoseconds,
// times are UTC, raft indexes are uint64.
package cluster
