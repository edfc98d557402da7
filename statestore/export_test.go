package statestore

import (
	"fmt"
	"iter"
	"maps"

	"github.com/hashicorp/go-memdb"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
)

// TableNames are the names of all tables. Schema is their schema.
var (
	TableNames = tableNames
	Schema     = schema
)

// Row types that are not exported.
type (
	Usage      = usage
	GroupTimes = groupTimes
	Pause      = pauseRow
	Health     = health
	Mark       = markRow
	Counters   = counters
	Version    = versionRow
)

// Watching returns the same state for a blocking query: each read adds its channel to ws.
func Watching(s *Snapshot, ws memdb.WatchSet) *Snapshot { return watching(s, ws) }

// NodeInDrain returns the node whose running drain has the id, or nil.
func NodeInDrain(s *Snapshot, id cluster.DrainID) *cluster.Node { return nodeInDrain(s.tables, id) }

// InsertRow puts a row unchanged into the table of its type.
func (s *Store) InsertRow(row any) {
	t := s.Begin(1)
	switch r := row.(type) {
	case *cluster.Node:
		t.rows.putNode(nil, r)
	case *cluster.Drain:
		put(&t.rows, TableDrains, nil, r)
		t.rows.counters.Records++
	case *cluster.Job:
		t.rows.putJob(nil, r)
	case *cluster.Allocation:
		standby := *r
		t.rows.putAlloc(nil, r)
		if standby.Standby != r.Standby { // it has no original
			t.rows.insert(TableAllocs, &standby)
			if t.rows.changing(&standby) {
				t.rows.insert(tableChanging, standby.Bare())
			}
		}
	case *cluster.Evaluation:
		t.rows.putEval(nil, r)
	case *cluster.Volume:
		put(&t.rows, TableVolumes, nil, r)
	case *cluster.VolumeClaim:
		put(&t.rows, TableClaims, nil, r)
	case *usage:
		t.rows.insert(tableLedger, r)
	case *health:
		t.rows.insert(tableLedger, r)
	case *markRow:
		t.rows.insert(tableMarks, r)
	case *versionRow:
		t.rows.insert(tableLedger, r)
	case *journal.Journal:
		t.rows.insert(tableJournals, r)
	case *journal.Running:
		t.rows.insert(tableJournalGroups, r)
	case *pauseRow:
		t.rows.insert(tablePause, r)
	case *groupTimes:
		t.rows.insert(tableTimes, r)
	case *counters:
		*t.rows.counters = *r
	default:
		panic(fmt.Sprintf("no table of %T", row))
	}
	t.Commit()
}

// UsageRows are the accounts of nodes.
func UsageRows(s *Snapshot) map[cluster.NodeID]usage {
	return maps.Collect(func(yield func(cluster.NodeID, usage) bool) {
		for u := range scan[usage](s.tables, tableLedger, indexID, key{accountOfNode}) {
			if !yield(u.NodeID, *u) {
				return
			}
		}
	})
}

// HealthRows are the accounts of groups.
func HealthRows(s *Snapshot) map[cluster.GroupKey]int {
	rows := make(map[cluster.GroupKey]int)
	for h := range scan[health](s.tables, tableLedger, indexID, key{accountOfGroup}) {
		rows[h.Group] = h.Healthy
	}
	return rows
}

// ChangingRows counts the rows of that table.
func ChangingRows(s *Snapshot) (count int) {
	for range scan[cluster.Allocation](s.tables, tableChanging, indexID, nil) {
		count++
	}
	return count
}

// MarkRows counts the rows of that table.
func MarkRows(s *Snapshot) (count int) {
	for range scan[markRow](s.tables, tableMarks, indexID, nil) {
		count++
	}
	return count
}

// RecordCount is the count of records that retention uses.
func RecordCount(s *Snapshot) int { return int(s.counters.Records) }

// Sum returns the checksum that ends a persisted state.
func Sum(state []byte) uint64 {
	sum := checksum()
	sum.Write(state)
	return sum.Sum64()
}

// AddNodes adds changed nodes to a feed, even if the feed is closed.
func AddNodes(f drainer.Feed, nodes ...cluster.NodeID) {
	f.(*feed).add(&changes{nodes: nodes})
}

// Hook returns a function that does only the feed's part of a commit that changes the rows: it
// notes the changes and notifies a feed. The state of the feed has no rows, because the feed must
// not read any.
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
		f.(*feed).add(c)
		c.reset()
		s.spare.Store(c)
	}
}

// Account returns a function that updates only the group accounts for a write that changes the
// rows, in one transaction per entry. The rows themselves do not change. The function panics if a
// count changes.
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
		t := &Txn{rows: rowWrites{&tables{txn: s.db.Txn(true), counters: rows.counters, written: w}}, store: s}
		for i, a := range after[entry] {
			t.rows.accountAlloc(before[entry][i], a)
		}
		t.rows.flushHealth()
		if len(w.healthy) > 0 {
			panic("a count has changed")
		}
		t.rows.txn.Commit()
	}
}

// MaxMoments is the number of states that a history has at least.
const MaxMoments = maxMoments

// AddMoments adds states to the history of the store, at the indexes from first on, without writing them.
func (s *Store) AddMoments(first uint64, n int) {
	for i := range uint64(n) {
		s.history.add(moment{first + i, first + i})
	}
}

// Journals yields the rows of journals.
func Journals(s *Snapshot) iter.Seq[*journal.Journal] {
	return scan[journal.Journal](s.tables, tableJournals, indexID, nil)
}

// JournalGroups yields the rows of the groups of running drains.
func JournalGroups(s *Snapshot) iter.Seq[*journal.Running] {
	return scan[journal.Running](s.tables, tableJournalGroups, indexID, nil)
}
