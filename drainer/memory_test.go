package drainer

import (
	"reflect"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// memory is a state store over worlds. A commit replaces the world by an edited copy. Its feeds
// name the rows that differ.
type memory struct {
	mu        sync.Mutex
	world     *fixture.World // guarded by mu; never written to
	lagging   *fixture.World // guarded by mu; snapshots show it instead; or nil
	feeds     []*memoryFeed  // guarded by mu
	snapshots int            // guarded by mu; counts calls of Snapshot
	vague     bool           // its feeds only report that anything may have changed
}

var _ StateReader = (*memory)(nil)

// newMemory returns a store with the cluster, which it owns.
func newMemory(c *fixture.Cluster) *memory { return &memory{world: c.World} }

func (m *memory) Snapshot() rules.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshots++
	if m.lagging != nil {
		return m.lagging
	}
	return m.world
}

// now is the newest state, for tests to read.
func (m *memory) now() *fixture.Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &fixture.Cluster{World: m.world}
}

// draining are the nodes that still drain.
func (m *memory) draining() (ids []cluster.NodeID) {
	for n := range m.now().DrainingNodes() {
		ids = append(ids, n.ID)
	}
	return ids
}

// lag makes snapshots show the current state until it is called with false.
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
func (m *memory) commit(edit func(*fixture.Cluster)) (index uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, after := m.world, m.world.DeepCopy()
	after.LastIndex++
	edit(&fixture.Cluster{World: after})
	keepRows(before.Nodes, after.Nodes)
	keepRows(before.Jobs, after.Jobs)
	keepRows(before.Allocs, after.Allocs)
	keepRows(before.Evals, after.Evals)
	m.world = after
	for _, f := range m.feeds {
		f.note(before, after, m.vague)
	}
	return after.LastIndex
}

// keepRows replaces every row that did not change by the old row.
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

// memoryFeed is a Feed that compares worlds.
type memoryFeed struct {
	wake chan<- struct{}
	// beforeFollow is called before a job is followed; or nil.
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

// follows are the followed jobs, with their counts.
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

// add passes changes to the subscriber, if there are any.
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

func (f *memoryFeed) note(before, after *fixture.World, vague bool) {
	if vague {
		f.add(Changes{All: true})
		return
	}
	var c Changes
	for _, key := range differ(before.Allocs, after.Allocs, func(a *cluster.Allocation) cluster.AllocID { return a.ID }) {
		for _, w := range []*fixture.World{before, after} {
			a := w.Alloc(key)
			if a == nil {
				continue
			}
			drains := before.Node(a.NodeID).Draining() || after.Node(a.NodeID).Draining()
			if drains {
				c.Hosts = append(c.Hosts, a.NodeID)
			}
			if drains || f.follow(a.JobKey()) {
				c.Groups = append(c.Groups, a.GroupKey())
			}
		}
	}
	for _, id := range differ(before.Nodes, after.Nodes, func(n *cluster.Node) cluster.NodeID { return n.ID }) {
		old, new := before.Node(id), after.Node(id)
		if old.Draining() || new.Draining() {
			c.Nodes = append(c.Nodes, id)
		}
		if old != nil && new != nil && old.Status == new.Status {
			continue
		}
		for _, a := range after.Allocs {
			if a.NodeID == id && !a.ClientTerminal() && f.follow(a.JobKey()) {
				c.Groups = append(c.Groups, a.GroupKey())
			}
		}
	}
	if before.PauseOfAll != after.PauseOfAll {
		for n := range after.DrainingNodes() {
			c.Nodes = append(c.Nodes, n.ID)
		}
	}
	for _, key := range differ(before.Jobs, after.Jobs, (*cluster.Job).Key) {
		if f.follow(key) {
			c.Jobs = append(c.Jobs, key)
		}
	}
	for _, id := range differ(before.Evals, after.Evals, func(e *cluster.Evaluation) cluster.EvalID { return e.ID }) {
		for _, e := range append(before.Evals, after.Evals...) {
			if e.ID == id && f.follow(e.JobKey()) {
				c.Jobs = append(c.Jobs, e.JobKey())
			}
		}
	}
	f.add(c)
}

// differ are the keys of the rows that are in only one of the tables, or that differ.
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
