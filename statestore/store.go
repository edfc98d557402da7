package statestore

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Store is the state of one cluster. It is safe for concurrent use: any number
// of snapshots and feeds, and one transaction at a time.
type Store struct {
	db    *memdb.MemDB
	feeds feeds

	// committing is held while a transaction commits, so that newest never goes back.
	committing sync.Mutex
	// newest is the newest state, or nil during a commit, because a query that the commit wakes
	// must not get the previous state.
	newest atomic.Pointer[Snapshot]

	// draining are the nodes that drain in newest.
	draining drainingNodes // never nil
	// spare is memory for the changes of the next transaction, or nil.
	spare atomic.Pointer[changes]

	// removals belong to the store. A snapshot of it shows the newest ones.
	removals *removals

	// abandoned is closed when the store has been replaced.
	abandoned   chan struct{}
	abandonOnce sync.Once
}

// New returns an empty store.
func New() *Store {
	db, err := memdb.NewMemDB(schema())
	if err != nil {
		panic("statestore: broken schema: " + err.Error())
	}
	s := &Store{db: db, draining: make(drainingNodes), removals: new(removals), abandoned: make(chan struct{})}
	txn := db.Txn(true)
	(&rowWrites{readsOf(&tables{txn: txn})}).insert(tableLedger, &counters{})
	txn.Commit()
	return s
}

// Snapshot returns the newest state. It is cheap and never blocks.
func (s *Store) Snapshot() *Snapshot {
	if newest := s.newest.Load(); newest != nil {
		return newest
	}
	return s.snapshot()
}

func (s *Store) snapshot() *Snapshot {
	r := &tables{txn: s.db.Txn(false)}
	r.counters = first[counters](r, tableLedger, indexID, countersKey())
	return &Snapshot{readsOf(r), s.removals, s.abandoned}
}

// commit makes a transaction's writes the newest state, and wakes feeds. It updates the draining
// nodes before the next transaction can begin, because that transaction reads them.
func (s *Store) commit(t *Txn) {
	s.committing.Lock()
	defer s.committing.Unlock()
	s.newest.Store(nil)
	c := t.written.changes
	c.apply()
	if t.written.removed {
		s.removals.newest.Store(t.written.index) // before the state that lacks the rows
	}
	t.txn.Commit()
	s.newest.Store(&Snapshot{readsOf(&tables{txn: s.db.Txn(false), counters: t.counters}), s.removals, s.abandoned})
	s.feeds.publish(c)
	s.giveBack(t)
}

// takeSpare returns empty changes for the next transaction.
func (s *Store) takeSpare() *changes {
	if c := s.spare.Swap(nil); c != nil {
		return c
	}
	return &changes{draining: s.draining}
}

// giveBack keeps the memory of a transaction's changes for the next transaction.
func (s *Store) giveBack(t *Txn) {
	c := t.written.changes
	t.written.changes = nil
	c.reset()
	s.spare.Store(c)
}

// Begin starts the write transaction of one raft entry. It blocks while another is open. The caller
// commits or aborts the transaction.
func (s *Store) Begin(index uint64) *Txn {
	txn := s.db.Txn(true) // blocks; afterwards the newest state cannot change
	c := *s.Snapshot().counters
	c.Entry = index
	return &Txn{rowWrites: rowWrites{readsOf(&tables{txn: txn, counters: &c, written: newWritten(index, s.takeSpare())})}, store: s}
}

// Abandon marks the store as replaced by one that was restored from a snapshot. It wakes
// all feeds and blocking queries. Snapshots of the store stay readable.
func (s *Store) Abandon() {
	s.abandonOnce.Do(func() {
		close(s.abandoned)
		s.feeds.abandon()
	})
}

// Abandoned returns a channel that is closed when the store has been replaced.
func (s *Store) Abandoned() <-chan struct{} { return s.abandoned }

// Reader returns the store as the drainer reads it.
func (s *Store) Reader() drainer.StateReader { return reader{s} }

// reader adapts Store to [drainer.StateReader].
type reader struct{ store *Store }

func (r reader) Snapshot() rules.View { return r.store.Snapshot() }

func (r reader) Subscribe(wake chan<- struct{}) drainer.Feed { return r.store.Subscribe(wake) }
