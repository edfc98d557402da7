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
//	         a report has confirmed that the volume is off the node
//	ledger   the resources that a node's allocations use, derived from allocs; how many
//	         allocations of a group are healthy, derived from allocs and nodes; and the
//	         counters: the newest entry, the last entry that wrote to each table, the last
//	         that may have added capacity, and the number of records
//	changing the allocations that a drainer has to read one by one, by group: those on
//	         draining nodes, and those not stable; derived from allocs and nodes
//	marks    which allocations each drain has marked; derived from allocs
//	journals what happened in each drain, and the groups of those that run
//	times    how long the allocations of each group took; see [LearnedTimes]
//	pause    the pause of all drains; see [PauseDrains]
//
// Rows have the types of package cluster. Every list of [rules.View] is one range of an index that
// holds nothing else, so that the cost of a read depends on what it yields. Such lists are the
// allocations of a node that are not client-terminal, by stage and by whether they are leaving; the
// allocations of GroupAllocs; and the draining nodes. The indexes are in schema.go, their keys in
// keys.go.
//
// Each write updates ledger, changing and marks by its own change. A write that does not change
// health reads no node for them, and a write that moves no allocation reads no node's account. When
// a node is added or deleted, changes its reachability, or starts or ends a drain, its allocations
// are counted again. The rows of changing lack the fields that only describe writes
// ([cluster.Allocation.Bare]), so a write that changes no other field costs nothing there. Of these
// tables only the counters are persisted.
//
// A client's report changes allocs and the tables derived from it, but never nodes, so it wakes no
// watcher of nodes.
//
// # Who may write
//
// Only the FSM writes, between [Store.Begin] and [Txn.Commit], one entry at a time. A write depends
// on the entry and the state and nothing else: no write reads a clock, makes an id or depends on
// the order of a map. So the same log gives the same state on every server, byte for byte
// ([Dump], [Persist]). An entry that changes nothing also has a transaction,
// because the state's index moves with every entry.
//
// One bad item never fails the rest of its batch. Each write skips items that cannot be written,
// and its comment lists them. An error names the item that was not written. The rest of the
// transaction is kept, and the caller commits or aborts.
//
// # Rows are read-only
//
// The store copies its input, except versions of jobs that are already in the store. All readers
// share the rows that it returns and must not change them. A write replaces a row by a new one.
//
// # Snapshots
//
// A [Snapshot] is one state. It is cheap, blocks no other call, and keeps its rows in memory while
// it is held. [Txn.State] also shows the transaction's own writes, so that the checks of an entry
// read the changes that the entry has made so far.
//
// A [State] has three readers. It itself has the reads of the HTTP API and of judges.
// [State.DrainView] has those of the drainer, [State.WorkView] those of the scheduler and of the
// collection of ended work.
//
// [Persist] writes a state for [Restore], which makes a new store from it. The restored
// state has the same index.
//
// # Waiting for changes
//
// [Store.Blocking] repeats a query when a row that the query has read changes. Use it for
// occasional queries: its cost grows with the rows that the query reads.
//
// [Store.Subscribe] returns a feed for the drainer that names what changed. A commit adds to it
// after the commit is visible. The feed names changes of draining nodes, of allocations on them,
// and of the jobs that the subscriber follows, see [drainer.Feed]; no other change wakes the
// subscriber. The cost of the feed depends on the changes of the commit. Transactions reuse the
// memory for the changes. When a node is added or deleted, the transaction counts its allocations
// again and also notes their groups. So a feed reads no row, and allocates no memory for changes
// that concern no subscriber.
//
// # Abandoned stores
//
// When a server restores a snapshot, the FSM replaces the old store by the new one and abandons the
// old one ([Store.Abandon]). An abandoned store does not change any more. Blocking queries on it
// end with [ErrAbandoned], its feeds report Abandoned, and its snapshots stay readable. Callers
// then use the new store.
//
// # Large transactions
//
// In each index go-memdb tracks up to 8,192 tree nodes whose watchers it has to wake. Beyond that
// it compares the whole tree before and after the transaction, and a row costs several times more.
// BenchmarkKnee measures the number of rows. Writes to many allocations read all of them before
// they write the first: every read between two writes makes go-memdb copy and track nodes again, so
// the limit is reached with fewer rows.
package statestore
