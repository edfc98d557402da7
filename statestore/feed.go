package statestore

import (
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// MaxFeedKeys bounds the keys of each kind that a feed keeps between two calls of Take.
// Above it the feed reports [drainer.Changes.All].
const MaxFeedKeys = 1 << 14

// Subscribe returns a feed of the changes from now on. After each commit that concerns the
// feed, the store sends to wake without blocking. A channel of capacity one is enough. A
// snapshot that is taken after a wake-up contains the change.
//
// A feed of an abandoned store reports [drainer.Changes.Abandoned] at each Take.
func (s *Store) Subscribe(wake chan<- struct{}) drainer.Feed {
	f := &feed{store: s, wake: wake, followed: make(map[cluster.JobKey]int)}
	s.feeds.add(f)
	select {
	case <-s.abandoned: // Abandon may have missed the new feed
		f.abandon()
	default:
	}
	return f
}

// feeds are a store's open feeds.
type feeds struct {
	mu sync.Mutex
	// open is replaced and never changed, so that it can be read without mu.
	open []*feed // guarded by mu
}

func (f *feeds) add(one *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(slices.Clone(f.open), one)
}

func (f *feeds) remove(one *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = slices.DeleteFunc(slices.Clone(f.open), func(o *feed) bool { return o == one })
}

func (f *feeds) all() []*feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// publish gives the changes to all feeds.
func (f *feeds) publish(c *changes) {
	for _, one := range f.all() {
		one.add(c)
	}
}

func (f *feeds) abandon() {
	for _, one := range f.all() {
		one.abandon()
	}
}

var _ drainer.Feed = (*feed)(nil)

// feed collects the changes for one subscriber.
type feed struct {
	store *Store // never nil

	mu   sync.Mutex
	wake chan<- struct{} // guarded by mu; nil once closed
	// followed counts the follows of each job.
	followed map[cluster.JobKey]int // guarded by mu

	// What has changed since the last Take; guarded by mu.
	nodes     set[cluster.NodeID]
	hosts     set[cluster.NodeID]
	groups    set[cluster.GroupKey]
	jobs      set[cluster.JobKey]
	overflown bool
	abandoned bool // stays
}

// add adds the changes that concern the subscriber, and wakes it. It does not read the
// state.
func (f *feed) add(c *changes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	added := false
	for _, id := range c.nodes {
		f.nodes.add(id)
		added = true
	}
	for _, id := range c.claiming {
		f.hosts.add(id)
		added = true
	}
	added = f.addAllocs(c) || added
	for _, j := range c.jobs {
		if f.followed[j] > 0 {
			f.jobs.add(j)
			added = true
		}
	}
	for _, g := range c.around.items {
		if f.followed[g.Job] > 0 {
			f.groups.add(g)
			added = true
		}
	}
	if added {
		f.bound()
		f.ring()
	}
}

// addAllocs adds the changed allocations that concern the subscriber, and reports whether there are
// any. Allocations that change together mostly belong to one group, so it reuses the look-up of the
// last group.
func (f *feed) addAllocs(c *changes) (added bool) {
	var group cluster.GroupKey
	follows, hasGroup := false, false
	for i, a := range c.allocs {
		if g := a.GroupKey(); i == 0 || g != group {
			group, follows, hasGroup = g, f.followed[g.Job] > 0, false
		}
		drained := c.drained(a.NodeID)
		if drained {
			f.hosts.add(a.NodeID)
		}
		if !drained && !follows {
			continue
		}
		added = true
		if !hasGroup {
			hasGroup = true
			f.groups.add(group)
		}
	}
	return added
}

// bound replaces the keys by overflown when there are too many of them.
func (f *feed) bound() {
	if max(len(f.nodes.items), len(f.hosts.items), len(f.groups.items), len(f.jobs.items)) <= MaxFeedKeys {
		return
	}
	f.overflown = true
	f.nodes.take()
	f.hosts.take()
	f.groups.take()
	f.jobs.take()
}

// ring wakes the subscriber. The caller holds mu, so that nothing is sent after Close has returned.
// The send cannot block.
func (f *feed) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned = true
	f.ring()
}

// Take returns the changes since the last Take.
func (f *feed) Take() drainer.Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := drainer.Changes{
		All:       f.overflown,
		Abandoned: f.abandoned,
		Nodes:     f.nodes.take(),
		Hosts:     f.hosts.take(),
		Groups:    f.groups.take(),
		Jobs:      f.jobs.take(),
	}
	f.overflown = false
	return c
}

// Follow adds a job to the feed, from the next commit on.
func (f *feed) Follow(k cluster.JobKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed[k]++
}

// Unfollow reverts one Follow.
func (f *feed) Unfollow(k cluster.JobKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followed[k]--; f.followed[k] <= 0 {
		delete(f.followed, k)
	}
}

// Close ends the feed. Nothing is sent to wake afterwards.
func (f *feed) Close() {
	f.store.feeds.remove(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake = nil
}
