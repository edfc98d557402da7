package statestore

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

var (
	// ErrNodeNotFound means that no node has this id.
	ErrNodeNotFound = errors.New("node not found")
	// ErrJobNotFound means that no job has this id.
	ErrJobNotFound = errors.New("job not found")
	// ErrAllocNotFound means that no allocation has this id.
	ErrAllocNotFound = errors.New("allocation not found")
	// ErrVolumeNotFound means that no volume has this id.
	ErrVolumeNotFound = errors.New("volume not found")
	// ErrClaimNotFound means that no allocation on the node claims the volume.
	ErrClaimNotFound = errors.New("volume is not claimed on the node")
	// ErrVolumeInUse means that claims forbid the change. Stop the allocations that claim the
	// volume, or use force.
	ErrVolumeInUse = errors.New("volume in use")
	// ErrNodeDraining means that a node cannot be made eligible while it drains. End the
	// drain first.
	ErrNodeDraining = errors.New("can not set node's scheduling eligibility to eligible while it is draining")
	// ErrNodeSecret means that the node is registered with another secret. An operator must delete
	// the node before another client can register it.
	ErrNodeSecret = errors.New("node is registered with another secret")
	// ErrAbandoned means that the store was replaced. Use the store that replaced it.
	ErrAbandoned = errors.New("state store was abandoned")
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

	// history and removals belong to the store. A snapshot of it shows the newest ones.
	history  *history
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
	s := &Store{
		db: db, draining: make(drainingNodes), history: &history{states: []moment{{}}}, removals: new(removals), abandoned: make(chan struct{}),
	}
	txn := db.Txn(true)
	(&rowWrites{&tables{txn: txn}}).insert(tableLedger, &counters{})
	txn.Commit()
	return s
}

// Fork returns a store of its own with the newest state. It copies no rows, so it costs about as much as
// a transaction. Writes to one of the two stores do not change the other. The fork has no feeds, and
// its history begins with this state.
func (s *Store) Fork() *Store {
	s.committing.Lock()
	defer s.committing.Unlock()
	state := s.snapshot()
	return &Store{
		db: s.db.Snapshot(), draining: maps.Clone(s.draining), history: &history{states: []moment{{state.Index(), state.History()}}},
		removals: new(removals), abandoned: make(chan struct{}),
	}
}

// Snapshot returns the newest state. It is cheap and never blocks.
func (s *Store) Snapshot() *Snapshot {
	if newest := s.newest.Load(); newest != nil {
		return newest
	}
	return s.snapshot()
}

func (s *Store) snapshot() *Snapshot {
	t := &tables{txn: s.db.Txn(false)}
	t.counters = first[counters](t, tableLedger, indexID, countersKey())
	return &Snapshot{stateOf(t), s.history, s.removals, s.abandoned}
}

// commit makes a transaction's writes the newest state, and wakes feeds. It updates the draining
// nodes before the next transaction can begin, because that transaction reads them.
func (s *Store) commit(t *Txn) {
	s.committing.Lock()
	defer s.committing.Unlock()
	s.newest.Store(nil)
	c := t.rows.written.changes
	c.apply()
	if t.rows.written.removed {
		s.removals.newest.Store(t.rows.written.index) // before the state that lacks the rows
	}
	s.history.add(moment{t.rows.counters.Entry, t.rows.counters.History}) // before a reader can have the state
	t.rows.txn.Commit()
	s.newest.Store(&Snapshot{stateOf(&tables{txn: s.db.Txn(false), counters: t.rows.counters}), s.history, s.removals, s.abandoned})
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
	c := t.rows.written.changes
	t.rows.written.changes = nil
	c.reset()
	s.spare.Store(c)
}

// Begin starts the write transaction of one raft entry. It blocks while another is open. The caller
// commits or aborts the transaction.
func (s *Store) Begin(index uint64) *Txn {
	txn := s.db.Txn(true) // blocks; afterwards the newest state cannot change
	c := *s.Snapshot().counters
	c.Entry = index
	return &Txn{rows: rowWrites{&tables{txn: txn, counters: &c, written: newWritten(index, s.takeSpare())}}, store: s}
}

// Blocking runs the query until its index is above minIndex. Before each repetition it
// waits until a row changes that the query has read. With a minIndex of zero it runs the
// query once. The query must read only its snapshot, and from one goroutine.
//
// Blocking returns the last index of the query. The error is that of the query or of the
// context, or [ErrAbandoned].
func (s *Store) Blocking(ctx context.Context, minIndex uint64, query func(*Snapshot) (index uint64, err error)) (uint64, error) {
	for {
		ws := memdb.NewWatchSet()
		ws.Add(s.abandoned)
		index, err := query(watching(s.Snapshot(), ws))
		if err != nil || minIndex == 0 || index > minIndex {
			return index, err
		}
		if err := ws.WatchCtx(ctx); err != nil {
			return index, err
		}
		select {
		case <-s.abandoned:
			return index, ErrAbandoned
		default:
		}
	}
}

// Advance sets the index of the state and of each table, and changes no row. A state that replaces
// a newer one gets a higher index than that one, so that every waiting reader reads again. The
// index must be above every index in the state. Advance also raises the cluster version to v, if it
// is lower.
func (s *Store) Advance(index uint64, v cluster.Version) {
	t := s.Begin(index)
	t.RaiseClusterVersion(v)
	Extend(t, nil)
	for _, name := range persistedCounters() {
		if name == counterHistory {
			continue // no index
		}
		if (name == TableVolumes || name == TableClaims) && versionIn(t.rows.tables) < cluster.VersionOfVolumes {
			continue // older servers do not have these tables
		}
		*t.rows.counters.named(name) = index
	}
	t.Commit()
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

func (r reader) Snapshot() rules.View { return r.store.Snapshot().DrainView() }

func (r reader) Subscribe(wake chan<- struct{}) drainer.Feed { return r.store.Subscribe(wake) }
