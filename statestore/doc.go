// Package statestore holds the state of a cluster in go-memdb tables. The FSM of package shims
// writes one transaction for each raft entry. All others read consistent snapshots. Begin with
// [New] and [Store.Snapshot].
//
// # Tables
//
//	nodes    machines, each with its running drain, if any
//	drains   records of ended drains; they outlive their nodes
//	jobs     the current version of each job
//	allocs   allocations, each with the version of its job it was placed for
//	evals    evaluations
//	volumes  volumes that exist outside the cluster
//	claims   which allocation may use which volume, from the plan that places it until
//	         the volume has left the node
//	ledger   what a node's allocations take, which follows from allocs; how many of a group
//	         are healthy, which follows from allocs and nodes; and the counters: the last
//	         entry that wrote to each table, that brought capacity, and of all, and how many
//	         records there are
//	changing the allocations that a drainer has to read one by one, by group:
//	         those on nodes that drain, and those not stable; follows from both
//	marks    which allocations each drain has marked; follows from allocs
//
// Rows are the nouns of package cluster. Every list that [rules.View] asks for is one range
// of an index that holds nothing else, so that reading it costs what it yields: of a node,
// its allocations that are not client-terminal, by stage and by whether they were asked to
// leave; of a group, those still to be looked at; the nodes that drain. The indexes are in
// schema.go, their keys in indexes.go.
//
// Ledger, changing and marks are kept by what changes: a write that does not change health
// reads no node for them, and a write that moves no allocation reads no node's account. When
// a node is added, is deleted, or begins or ends to drain, its allocations are counted again.
// The rows of changing lack the fields that only describe writes
// ([cluster.Allocation.Bare]), so a write that changes no other field costs nothing there. Of
// all these only the counters are persisted.
//
// A client's report changes allocs and the tables that follow from them, never nodes, so it
// wakes no watcher of nodes.
//
// # Who may write
//
// Only the FSM, in [Store.Begin], [Txn.Commit], one entry at a time. What a write does
// follows from the entry and the state, and nothing else: no write reads a clock, makes an id
// or depends on the order of a map. So the same log gives the same state on every server,
// byte for byte ([Snapshot.Dump], [Snapshot.Persist]). An entry that changes nothing is begun
// and committed all the same: the state's index moves with every entry.
//
// One bad item never fails the rest of its batch. Each write skips items that cannot be
// written, and documents which. An error that a write returns means that the item it names
// was not written; everything else of the transaction stands, and the caller commits or
// aborts.
//
// # Nothing is written to
//
// The store copies its input, except versions of jobs that are already in the store. All
// readers share its output, which never changes: a write replaces the row by a new one.
// Readers must not write to it either.
//
// # Snapshots
//
// A [Snapshot] is one state for as long as it is held. It costs nothing to make, blocks no
// other call, and keeps its rows in memory. A [Txn] is a snapshot that shows its own writes
// too, so that checks made when an entry is applied see what the entry has done so far.
//
// [Snapshot.Persist] writes a state for [Restore], which makes a new store of it. The index
// of a restored state is that of the state persisted.
//
// # Waiting for changes
//
// [Store.Blocking] repeats a query when something that it has read changes. Use it for
// occasional queries: its cost grows with the rows that the query reads.
//
// [Store.Subscribe] is for the drainer: a feed of where to look, which a commit fills after
// it has become visible. It tells of draining nodes and what is on them, and of the jobs the
// subscriber follows, see [drainer.Feed]; no other change wakes it. The cost of a commit for
// the feed follows the changes of the commit. Transactions reuse the memory for them. When a
// node is added or deleted, its allocations are counted again, and their groups are noted
// too. So a feed reads no row, and allocates nothing for changes that concern no subscriber.
//
// # Abandoned stores
//
// When a server restores a snapshot, the FSM replaces the old store by the new one and
// abandons the old one ([Store.Abandon]). An abandoned store does not change any more.
// Blocking queries on it end with [ErrAbandoned], feeds report it, and snapshots stay
// readable. Waiting callers continue with the new store.
//
// # Large transactions
//
// go-memdb remembers, in each index, up to 8,192 tree nodes with watchers to wake;
// beyond that it compares the whole tree before and after the transaction, and a row costs
// several times more. BenchmarkKnee finds the number of rows. Writes to many allocations read
// all of them before they write the first, because every read between two writes makes
// go-memdb copy and remember nodes again, and the cost rises at fewer rows.
package statestore
