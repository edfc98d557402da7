package statestore

import (
	"fmt"
	"maps"

	"github.com/hashicorp/go-memdb"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// TableNames names all tables, Schema is what they are like.
var (
	TableNames = tableNames
	Schema     = schema
)

// Row types that are not exported.
type (
	Usage    = usage
	Health   = health
	Mark     = markRow
	Counters = counters
	Version  = versionRow
)

// Watching returns the same state, with every read adding to ws what it has to wait for.
func (s *Snapshot) Watching(ws memdb.WatchSet) *Snapshot { return s.watching(ws) }

// InsertRow puts a row as it is into the table of its type.
func (s *Store) InsertRow(row any) {
	t := s.Begin(1)
	switch r := row.(type) {
	case *cluster.Node:
		t.putNode(nil, r)
	case *cluster.Drain:
		put(t, TableDrains, nil, r)
		t.counters.Records++
	case *cluster.Job:
		t.putJob(nil, r)
	case *cluster.Allocation:
		t.putAlloc(nil, r)
	case *cluster.Evaluation:
		t.putEval(nil, r)
	case *usage:
		t.insert(tableLedger, r)
	case *health:
		t.insert(tableLedger, r)
	case *markRow:
		t.insert(tableMarks, r)
	case *versionRow:
		t.insert(tableLedger, r)
	case *counters:
		*t.counters = *r
	default:
		panic(fmt.Sprintf("no table of %T", row))
	}
	t.Commit()
}

// UsageRows are the accounts of nodes.
func (s *Snapshot) UsageRows() map[cluster.NodeID]usage {
	return maps.Collect(func(yield func(cluster.NodeID, usage) bool) {
		for u := range scan[usage](s.reads, tableLedger, indexID, key{accountOfNode}) {
			if !yield(u.NodeID, *u) {
				return
			}
		}
	})
}

// HealthRows are the accounts of groups.
func (s *Snapshot) HealthRows() map[cluster.GroupKey]int {
	rows := make(map[cluster.GroupKey]int)
	for h := range scan[health](s.reads, tableLedger, indexID, key{accountOfGroup}) {
		rows[h.Group] = h.Healthy
	}
	return rows
}

// UnsettledRows counts the rows of that table.
func (s *Snapshot) UnsettledRows() (count int) {
	for range scan[cluster.Allocation](s.reads, tableUnsettled, indexID, nil) {
		count++
	}
	return count
}

// MarkRows counts the rows of that table.
func (s *Snapshot) MarkRows() (count int) {
	for range scan[markRow](s.reads, tableMarks, indexID, nil) {
		count++
	}
	return count
}

// RecordCount is the count of records that retention goes by.
func (s *Snapshot) RecordCount() int { return int(s.counters.Records) }

// Sum returns the checksum that ends a persisted state.
func Sum(state []byte) uint64 {
	sum := checksum()
	sum.Write(state)
	return sum.Sum64()
}

// Tell tells a feed, closed or not, that nodes have changed.
func Tell(f drainer.Feed, nodes ...cluster.NodeID) {
	f.(*feed).tell(&changes{nodes: nodes})
}

// Hook returns what a commit that changes those rows costs for the sake of feeds, and
// nothing else of it: noting the changes, and telling a feed of them. The state that the
// feed is shown has no rows: it is not to read any.
func (s *Store) Hook(f drainer.Feed, nodes []cluster.NodeID, jobs []cluster.JobKey, allocs ...cluster.AllocID) func() {
	rows := s.Snapshot()
	var changedNodes []*cluster.Node
	for _, id := range nodes {
		changedNodes = append(changedNodes, rows.Node(id))
	}
	var changedJobs []*cluster.Job
	for _, key := range jobs {
		changedJobs = append(changedJobs, rows.Job(key))
	}
	var changedAllocs []*cluster.Allocation
	for _, id := range allocs {
		changedAllocs = append(changedAllocs, rows.Alloc(id))
	}
	return func() {
		c := s.takeSpare()
		for _, n := range changedNodes {
			c.node(n, n)
		}
		for _, j := range changedJobs {
			c.job(j, j)
		}
		for _, a := range changedAllocs {
			c.alloc(a, a)
		}
		c.apply()
		f.(*feed).tell(c)
		c.reset()
		s.spare.Store(c)
	}
}

// Account returns what a write that changes those rows costs for the sake of their
// groups' accounts, in a transaction for each entry, and nothing else of it: the rows
// themselves stay as they are. It panics if a count changes.
func (s *Store) Account(entries [][]cluster.AllocID) (keep func(entry int)) {
	rows := s.Snapshot()
	before, after := make([][]*cluster.Allocation, len(entries)), make([][]*cluster.Allocation, len(entries))
	for i, ids := range entries {
		for _, id := range ids {
			a := rows.Alloc(id).Copy()
			a.ClientDescription = "a task has restarted"
			before[i], after[i] = append(before[i], rows.Alloc(id)), append(after[i], a)
		}
	}
	w := newWritten(rows.Index()+1, &changes{draining: s.draining})
	return func(entry int) {
		t := &Txn{reads: reads{txn: s.db.Txn(true), counters: rows.counters, written: w}, store: s}
		for i, a := range after[entry] {
			t.accountAlloc(before[entry][i], a)
		}
		t.flushHealth()
		if len(w.healthy) > 0 {
			panic("a count has changed")
		}
		t.txn.Commit()
	}
}
