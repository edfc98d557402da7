package drainertest

import (
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// A store that does what it must passes; each way of not doing so is found.
func TestTheTestOfStores(t *testing.T) {
	t.Parallel()
	must.NoError(t, TestStore(func() Store { return newPlainStore(flaws{}) }))
	for name, f := range map[string]flaws{
		"views in another order":               {view: func(v drainer.View) drainer.View { return reversed{v} }},
		"a view without terminal canaries":     {view: func(v drainer.View) drainer.View { return onlyLive{v} }},
		"a view that counts system work":       {view: func(v drainer.View) drainer.View { return counting{v} }},
		"a view that counts out of reach":      {view: func(v drainer.View) drainer.View { return reaching{v} }},
		"a view where drains leave at rest":    {view: func(v drainer.View) drainer.View { return restful{v} }},
		"a view that is always the newest":     {mutable: true},
		"a feed that does not tell of nodes":   {tell: func(c *drainer.Changes) { c.Nodes = nil }},
		"a feed that does not tell of hosts":   {tell: func(c *drainer.Changes) { c.Hosts = nil }},
		"a feed that does not tell of groups":  {tell: func(c *drainer.Changes) { c.Groups = nil }},
		"a feed that does not tell of jobs":    {tell: func(c *drainer.Changes) { c.Jobs = nil }},
		"a feed that tells of the last change": {forgets: true},
		"a feed that names another entry of groups": {tell: func(c *drainer.Changes) {
			for i := range c.Groups {
				c.Groups[i].At--
			}
		}},
		"a feed that names another entry of jobs": {tell: func(c *drainer.Changes) {
			for i := range c.Jobs {
				c.Jobs[i].At--
			}
		}},
		"a feed that wakes nobody":             {silent: true},
		"a feed that never closes":             {unclosed: true},
		"a feed whose follows are not counted": {uncounted: true},
		"a store that is not abandoned":        {replaced: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must.Error(t, TestStore(func() Store { return newPlainStore(f) }))
		})
	}
}

// flaws are what is wrong with a store.
type flaws struct {
	view func(drainer.View) drainer.View
	tell func(*drainer.Changes)

	mutable, forgets, silent, unclosed, uncounted, replaced bool
}

// plainStore is a store without any index.
type plainStore struct {
	flaws flaws

	mu        sync.Mutex
	model     *model       // guarded by mu
	feeds     []*plainFeed // guarded by mu
	abandoned bool         // guarded by mu
}

func newPlainStore(f flaws) *plainStore { return &plainStore{flaws: f, model: (&model{}).next(0)} }

func (s *plainStore) Snapshot() drainer.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flaws.view != nil {
		return s.flaws.view(s.model)
	}
	return s.model
}

func (s *plainStore) Commit(index uint64, rows Rows) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after := s.model, s.model.next(index)
	after.write(rows)
	s.model = after
	if s.flaws.mutable {
		*before = *after
		s.model = before
	}
	for _, f := range s.feeds {
		f.told(mustTell(before, after, rows, f.follows))
	}
	return nil
}

func (m *model) write(rows Rows) {
	for _, n := range rows.Nodes {
		m.nodes[n.ID] = n
	}
	for _, j := range rows.Jobs {
		m.jobs[j.Key()] = j
	}
	for _, a := range rows.Allocs {
		m.allocs[a.ID] = a
	}
	for _, e := range rows.Evals {
		m.evals[e.ID] = e
	}
	for _, id := range rows.DeletedNodes {
		delete(m.nodes, id)
	}
	for _, key := range rows.DeletedJobs {
		delete(m.jobs, key)
	}
	for _, id := range rows.DeletedAllocs {
		delete(m.allocs, id)
	}
	for _, id := range rows.DeletedEvals {
		delete(m.evals, id)
	}
}

func (s *plainStore) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = !s.flaws.replaced
	for _, f := range s.feeds {
		f.ring()
	}
}

func (s *plainStore) Subscribe(wake chan<- struct{}) drainer.Feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &plainFeed{store: s, wake: wake, follows: map[cluster.JobKey]int{}}
	s.feeds = append(s.feeds, f)
	if s.abandoned {
		f.ring()
	}
	return f
}

// plainFeed is guarded by its store's mu.
type plainFeed struct {
	store   *plainStore
	wake    chan<- struct{}
	follows map[cluster.JobKey]int
	changes drainer.Changes
}

func (f *plainFeed) told(c drainer.Changes) {
	if f.store.flaws.tell != nil {
		f.store.flaws.tell(&c)
	}
	if f.store.flaws.forgets {
		f.changes = drainer.Changes{}
	}
	f.changes.Nodes = append(f.changes.Nodes, c.Nodes...)
	f.changes.Hosts = append(f.changes.Hosts, c.Hosts...)
	f.changes.Groups = append(f.changes.Groups, c.Groups...)
	f.changes.Jobs = append(f.changes.Jobs, c.Jobs...)
	if !c.Empty() && !f.store.flaws.silent {
		f.ring()
	}
}

func (f *plainFeed) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *plainFeed) Take() drainer.Changes {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	c := f.changes
	c.Abandoned = f.store.abandoned
	f.changes = drainer.Changes{}
	return c
}

func (f *plainFeed) Follow(key cluster.JobKey) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.follows[key]++
}

func (f *plainFeed) Unfollow(key cluster.JobKey) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.follows[key]--; f.store.flaws.uncounted {
		f.follows[key] = 0
	}
}

func (f *plainFeed) Close() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if !f.store.flaws.unclosed {
		f.store.feeds = slices.DeleteFunc(f.store.feeds, func(o *plainFeed) bool { return o == f })
	}
}

// reversed yields a node's allocations in the wrong order.
type reversed struct{ drainer.View }

func (v reversed) NodeAllocs(n cluster.NodeID, s cluster.Stage, asked bool) iter.Seq[*cluster.Allocation] {
	rows := slices.Collect(v.View.NodeAllocs(n, s, asked))
	slices.Reverse(rows)
	return slices.Values(rows)
}

// onlyLive leaves out the canaries that have ended.
type onlyLive struct{ drainer.View }

func (v onlyLive) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	rows := slices.Collect(v.View.GroupAllocs(g))
	return slices.Values(slices.DeleteFunc(rows, (*cluster.Allocation).ClientTerminal))
}

// reaching counts what is healthy on nodes that cannot be reached too.
type reaching struct{ drainer.View }

func (v reaching) Healthy(g cluster.GroupKey) int {
	count := 0
	for a := range v.GroupAllocs(g) {
		if a.HealthyIfReachable() {
			count++
		}
	}
	return count
}

// restful leaves out what is at rest on nodes that drain.
type restful struct{ drainer.View }

func (v restful) RestlessAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	rows := slices.Collect(v.View.RestlessAllocs(g))
	return slices.Values(slices.DeleteFunc(rows, (*cluster.Allocation).AtRest))
}

// counting counts what is no consumer too.
type counting struct{ drainer.View }

func (v counting) Consumers(n cluster.NodeID) int {
	count := 0
	for _, s := range cluster.Stages() {
		count += len(slices.Collect(v.NodeAllocs(n, s, true))) + len(slices.Collect(v.NodeAllocs(n, s, false)))
	}
	return count
}
