package drainer

import (
	"reflect"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// memory is a state store over worlds. A commit replaces the world by an edited
// copy; its feeds tell what differs between the two, found by comparing them row
// by row.
type memory struct {
	mu        sync.Mutex
	world     *world        // guarded by mu; never written to
	lagging   *world        // guarded by mu; what snapshots show instead, or nil
	feeds     []*memoryFeed // guarded by mu
	snapshots int           // guarded by mu; how many were taken
	vague     bool          // its feeds only say that anything may have changed
	// beforeSnapshot happens once before the next snapshot, after what was told was taken; or
	// nil.
	beforeSnapshot func()
}

var _ StateReader = (*memory)(nil)

// newMemory takes over the town.
func newMemory(t *town) *memory { return &memory{world: t.world} }

func (m *memory) Snapshot() View {
	if happens := m.beforeSnapshot; happens != nil {
		m.beforeSnapshot = nil
		happens()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshots++
	if m.lagging != nil {
		return m.lagging
	}
	return m.world
}

// now is the newest state, to look at.
func (m *memory) now() *town {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &town{m.world}
}

// lag has snapshots show what is the newest state now, until told otherwise.
func (m *memory) lag(lags bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lagging = nil
	if lags {
		m.lagging = m.world
	}
}

func (m *memory) taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshots
}

// commit edits a copy of the world and makes it the newest.
func (m *memory) commit(edit func(*town)) (index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, after := m.world, m.world.deepCopy()
	after.index++
	edit(&town{after})
	keepRows(before.nodes, after.nodes)
	keepRows(before.jobs, after.jobs)
	keepRows(before.allocs, after.allocs)
	keepRows(before.evals, after.evals)
	m.world = after
	for _, f := range m.feeds {
		f.tell(before, after, m.vague)
	}
	return after.index
}

// keepRows puts back every row that is as it was.
func keepRows[T any](before, after []*T) {
	for i, row := range after {
		if i < len(before) && reflect.DeepEqual(before[i], row) {
			after[i] = before[i]
			continue
		}
		for _, old := range before {
			if reflect.DeepEqual(old, row) {
				after[i] = old
			}
		}
	}
}

func (m *memory) abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.feeds {
		f.add(Changes{Abandoned: true})
	}
}

func (m *memory) Subscribe(wake chan<- struct{}) Feed {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &memoryFeed{wake: wake, followed: map[cluster.JobKey]int{}}
	m.feeds = append(m.feeds, f)
	return f
}

// feed is the newest subscriber's.
func (m *memory) feed() *memoryFeed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.feeds[len(m.feeds)-1]
}

// memoryFeed is the contract of Feed, by comparison.
type memoryFeed struct {
	wake chan<- struct{}
	// beforeFollow happens before a job is followed, and nobody is told; or nil.
	beforeFollow func()

	mu       sync.Mutex
	changes  Changes                // guarded by mu
	followed map[cluster.JobKey]int // guarded by mu
	closed   bool                   // guarded by mu
}

func (f *memoryFeed) Take() Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.changes
	f.changes = Changes{}
	return c
}

func (f *memoryFeed) Follow(k cluster.JobKey) {
	if f.beforeFollow != nil {
		f.beforeFollow()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed[k]++
}

func (f *memoryFeed) Unfollow(k cluster.JobKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed[k]--
	if f.followed[k] == 0 {
		delete(f.followed, k)
	}
}

func (f *memoryFeed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// follows are the jobs that are followed, with how often.
func (f *memoryFeed) follows() map[cluster.JobKey]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	follows := map[cluster.JobKey]int{}
	for k, n := range f.followed {
		follows[k] = n
	}
	return follows
}

func (f *memoryFeed) follow(k cluster.JobKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.followed[k] > 0
}

// add tells the subscriber, unless there is nothing to tell.
func (f *memoryFeed) add(c Changes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || c.Empty() {
		return
	}
	f.changes.merge(c)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *memoryFeed) tell(before, after *world, vague bool) {
	if vague {
		f.add(Changes{All: true})
		return
	}
	var c Changes
	for _, key := range differ(before.allocs, after.allocs, func(a *cluster.Allocation) cluster.AllocID { return a.ID }) {
		for _, w := range []*world{before, after} {
			a := w.Alloc(key)
			if a == nil {
				continue
			}
			drains := before.Node(a.NodeID).Draining() || after.Node(a.NodeID).Draining()
			if drains {
				c.Hosts = append(c.Hosts, a.NodeID)
			}
			if drains || f.follow(a.JobKey()) {
				c.Groups = append(c.Groups, Told[cluster.GroupKey]{a.GroupKey(), after.Index()})
			}
		}
	}
	for _, id := range differ(before.nodes, after.nodes, func(n *cluster.Node) cluster.NodeID { return n.ID }) {
		old, new := before.Node(id), after.Node(id)
		if old.Draining() || new.Draining() {
			c.Nodes = append(c.Nodes, id)
		}
		if old != nil && new != nil && old.Status == new.Status {
			continue
		}
		for _, a := range after.allocs {
			if a.NodeID == id && !a.ClientTerminal() && f.follow(a.JobKey()) {
				c.Groups = append(c.Groups, Told[cluster.GroupKey]{a.GroupKey(), after.Index()})
			}
		}
	}
	for _, key := range differ(before.jobs, after.jobs, (*cluster.Job).Key) {
		if f.follow(key) {
			c.Jobs = append(c.Jobs, Told[cluster.JobKey]{key, after.Index()})
		}
	}
	for _, id := range differ(before.evals, after.evals, func(e *cluster.Evaluation) cluster.EvalID { return e.ID }) {
		for _, e := range append(before.evals, after.evals...) {
			if e.ID == id && f.follow(e.JobKey()) {
				c.Jobs = append(c.Jobs, Told[cluster.JobKey]{e.JobKey(), after.Index()})
			}
		}
	}
	f.add(c)
}

// differ are the keys of the rows that are only in one of the tables, or not the
// same in both.
func differ[T any, K comparable](before, after []*T, key func(*T) K) (keys []K) {
	rows := map[K]*T{}
	for _, row := range before {
		rows[key(row)] = row
	}
	for _, row := range after {
		if rows[key(row)] != row {
			keys = append(keys, key(row))
		}
		delete(rows, key(row))
	}
	for k := range rows {
		keys = append(keys, k)
	}
	return keys
}
