package statestore

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

var (
	_ rules.View = (*Snapshot)(nil)
	_ rules.View = (*Txn)(nil)
)

// Snapshot is one state of the store. It never changes, and is safe for
// concurrent use, but for one that [Store.Blocking] gives to a query.
type Snapshot struct {
	reads
}

// watching returns the same state, with every read adding to ws what it has to
// wait for. It belongs to one goroutine.
func (s *Snapshot) watching(ws memdb.WatchSet) *Snapshot {
	r := s.reads
	r.ws = ws
	return &Snapshot{r}
}

// reads are the reads that a snapshot and a write transaction have in common.
type reads struct {
	txn *memdb.Txn
	// counters are those of the state: of a transaction, its own. Never nil.
	counters *counters
	// ws collects what reads depend on, or nil.
	ws memdb.WatchSet
	// written is what the transaction has written besides rows, or nil in a
	// snapshot.
	written *written
}

// first returns the row of that key in an index, or nil.
func first[T any](r reads, table, index string, k key) *T {
	watch, row, err := r.txn.FirstWatch(table, index, k)
	if err != nil {
		panic("statestore: reading " + table + " by " + index + ": " + err.Error())
	}
	r.ws.Add(watch)
	found, _ := row.(*T)
	return found
}

// scan yields the rows of an index whose keys begin with k, in its order. A nil
// key is all of them.
func scan[T any](r reads, table, index string, k key) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		rows := r.rows(table, index, k)
		for row := rows.Next(); row != nil; row = rows.Next() {
			if !yield(row.(*T)) {
				return
			}
		}
	}
}

// rows are the rows that scan yields.
func (r reads) rows(table, index string, k key) memdb.ResultIterator {
	if k == nil {
		k = key{}
	}
	rows, err := r.txn.Get(table, index, k)
	if err != nil {
		panic("statestore: scanning " + table + " by " + index + ": " + err.Error())
	}
	r.ws.Add(rows.WatchCh())
	return rows
}

// Index is the raft index of the newest entry in the state.
func (r reads) Index() uint64 {
	r.watchCounters()
	return r.counters.Entry
}

// TableIndex is the raft index of the last entry that wrote to the table, zero
// if none did.
func (r reads) TableIndex(table string) uint64 {
	index := r.counters.of(table)
	if index == nil {
		return 0
	}
	r.watch(table) // not the counters, which every entry moves
	return *index
}

// CapacityIndex is the raft index of the last entry after which more may fit on
// the nodes than before: a node became usable, or larger, or an allocation ended.
func (r reads) CapacityIndex() uint64 {
	r.watchCounters()
	return r.counters.Capacity
}

// watchCounters adds the counters to what is waited for, if somebody waits.
func (r reads) watchCounters() {
	if r.ws != nil {
		first[counters](r, tableLedger, indexID, countersKey())
	}
}

// watch adds all rows of the table to what is waited for, if somebody waits.
func (r reads) watch(table string) {
	if r.ws != nil {
		r.rows(table, indexID, nil)
	}
}

// Node returns the node, or nil.
func (r reads) Node(id cluster.NodeID) *cluster.Node {
	return first[cluster.Node](r, TableNodes, indexID, lone(id))
}

// Nodes yields all nodes by id.
func (r reads) Nodes() iter.Seq[*cluster.Node] {
	return scan[cluster.Node](r, TableNodes, indexID, nil)
}

// NodesByPrefix yields the nodes whose id begins with the prefix, by id.
func (r reads) NodesByPrefix(prefix string) iter.Seq[*cluster.Node] {
	return scan[cluster.Node](r, TableNodes, indexID, key{}.open(prefix))
}

// DrainingNodes yields the nodes that drain, by id.
func (r reads) DrainingNodes() iter.Seq[*cluster.Node] {
	return scan[cluster.Node](r, TableNodes, indexLists, key{listDraining})
}

// DrainingNode returns the node whose running drain has the id, or nil.
func (r reads) DrainingNode(id cluster.DrainID) *cluster.Node {
	return first[cluster.Node](r, TableNodes, indexLists, drainOfNode(id))
}

// Drains yields the records of ended drains by (EndIndex, id): oldest first.
func (r reads) Drains() iter.Seq[*cluster.Drain] {
	return scan[cluster.Drain](r, TableDrains, indexAge, nil)
}

// DrainsByNode yields the records of a node's ended drains, oldest first. The
// node need not exist any more.
func (r reads) DrainsByNode(id cluster.NodeID) iter.Seq[*cluster.Drain] {
	return scan[cluster.Drain](r, TableDrains, indexNode, newKey(id))
}

// DrainRecord returns the record of an ended drain, or nil if it runs, never
// was, or has been forgotten.
func (r reads) DrainRecord(id cluster.DrainID) *cluster.Drain {
	return first[cluster.Drain](r, TableDrains, indexID, lone(id))
}

// Job returns the current version of the job, or nil.
func (r reads) Job(k cluster.JobKey) *cluster.Job {
	return first[cluster.Job](r, TableJobs, indexID, jobKey(k))
}

// Jobs yields the current versions of all jobs, by namespace and id.
func (r reads) Jobs() iter.Seq[*cluster.Job] {
	return scan[cluster.Job](r, TableJobs, indexID, nil)
}

// JobsOnEveryNode yields those that run on every fitting node, by namespace and id.
func (r reads) JobsOnEveryNode() iter.Seq[*cluster.Job] {
	return scan[cluster.Job](r, TableJobs, indexEveryNode, nil)
}

// Alloc returns the allocation, or nil.
func (r reads) Alloc(id cluster.AllocID) *cluster.Allocation {
	return first[cluster.Allocation](r, TableAllocs, indexID, lone(id))
}

// Allocs yields all allocations by id.
func (r reads) Allocs() iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, TableAllocs, indexID, nil)
}

// AllocsByNode yields a node's allocations: those that are not client-terminal
// by stage, by whether they were asked to leave, and by id; then the others by
// id. The node need not exist.
func (r reads) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, TableAllocs, indexNode, newKey(id))
}

// LiveAllocsByNode yields those of a node's allocations that are not
// client-terminal, in the order of AllocsByNode.
func (r reads) LiveAllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, TableAllocs, indexNode, newKey(id).bool(false))
}

// NodeAllocs yields the allocations of a node that belong to the stage and are
// not client-terminal, by id: those already asked to leave or those not asked.
func (r reads) NodeAllocs(n cluster.NodeID, s cluster.Stage, asked bool) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, TableAllocs, indexNode, liveOnNode(n, s, asked))
}

// AllocsByJob yields a job's allocations by group; within a group those of
// GroupAllocs first, then the others, each by id.
func (r reads) AllocsByJob(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, TableAllocs, indexGroup, jobKey(k))
}

// GroupAllocs yields, by id, the group's allocations that are not
// client-terminal, and its canaries that a drain marked, that are
// client-terminal, and that have no replacement.
func (r reads) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, TableAllocs, indexGroup, groupKey(g).bool(false))
}

// DrainAllocs yields the allocations the drain has marked, whatever became of
// them, by id. Marks that were withdrawn are not among them.
func (r reads) DrainAllocs(d cluster.DrainID) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for m := range scan[markRow](r, tableMarks, indexID, newKey(d)) {
			if !yield(r.Alloc(m.Alloc)) {
				return
			}
		}
	}
}

// Eval returns the evaluation, or nil.
func (r reads) Eval(id cluster.EvalID) *cluster.Evaluation {
	return first[cluster.Evaluation](r, TableEvals, indexID, lone(id))
}

// Evals yields all evaluations by id.
func (r reads) Evals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r, TableEvals, indexID, nil)
}

// EvalsByJob yields a job's evaluations: the open ones first, then the others,
// each by creation index and id.
func (r reads) EvalsByJob(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r, TableEvals, indexLists, evalsOfJob(k))
}

// OpenEvals yields the job's evaluations that are pending or blocked, by
// creation index, then id.
func (r reads) OpenEvals(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r, TableEvals, indexLists, evalsOfJob(k).bool(false))
}

// PendingEvals yields the evaluations that wait for the scheduler: higher
// priority first, then by creation index, then id.
func (r reads) PendingEvals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r, TableEvals, indexLists, queue(cluster.EvalPending))
}

// BlockedEvals yields the evaluations that wait for capacity, in the order of
// PendingEvals.
func (r reads) BlockedEvals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r, TableEvals, indexLists, queue(cluster.EvalBlocked))
}
