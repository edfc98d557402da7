package statestore

import (
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// MaxFeedKeys bounds what a feed remembers of each kind for a subscriber that
// does not take. Beyond it the feed tells to look everywhere.
const MaxFeedKeys = 1 << 14

// Subscribe returns a feed of what changes from now on. After each commit that
// the feed has something to tell of, the store sends to wake without blocking: a
// channel of capacity one misses nothing. A snapshot taken after a wake contains
// the change.
//
// A feed of an abandoned store says so whenever it is asked.
func (s *Store) Subscribe(wake chan<- struct{}) drainer.Feed {
	f := &feed{store: s, wake: wake, followed: make(map[cluster.JobKey]int)}
	s.feeds.add(f)
	select {
	case <-s.abandoned: // it may have been too late to be told with the others
		f.abandon()
	default:
	}
	return f
}

// feeds are a store's open feeds.
type feeds struct {
	mu sync.Mutex
	// open is replaced, never written to, so that it can be read without mu.
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

// publish tells all feeds what has changed.
func (f *feeds) publish(c *changes) {
	for _, one := range f.all() {
		one.tell(c)
	}
}

func (f *feeds) abandon() {
	for _, one := range f.all() {
		one.abandon()
	}
}

var _ drainer.Feed = (*feed)(nil)

// feed is one subscriber's.
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

// tell adds what of the changes concerns the subscriber, and wakes it. It reads nothing
// of the state.
func (f *feed) tell(c *changes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	told := false
	for _, id := range c.nodes {
		f.nodes.add(id)
		told = true
	}
	told = f.tellAllocs(c) || told
	for _, j := range c.jobs {
		if f.followed[j] > 0 {
			f.jobs.add(j)
			told = true
		}
	}
	for _, g := range c.around.items {
		if f.followed[g.Job] > 0 {
			f.groups.add(g)
			told = true
		}
	}
	if told {
		f.bound()
		f.ring()
	}
}

// tellAllocs adds what changed of allocations, and reports whether there was anything.
// Most that change together are of one group, which is looked for once.
func (f *feed) tellAllocs(c *changes) (told bool) {
	var group cluster.GroupKey
	follows, added := false, false
	for i, a := range c.allocs {
		if g := a.GroupKey(); i == 0 || g != group {
			group, follows, added = g, f.followed[g.Job] > 0, false
		}
		drained := c.drained(a.NodeID)
		if drained {
			f.hosts.add(a.NodeID)
		}
		if !drained && !follows {
			continue
		}
		told = true
		if !added {
			added = true
			f.groups.add(group)
		}
	}
	return told
}

// bound forgets the keys when they are too many to be worth telling one by one.
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

// ring wakes the subscriber. It sends under mu, so that nothing is sent once
// Close has returned; it cannot block.
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

// Take returns what has changed since the last Take, and forgets it.
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

// Follow asks to be told of a job, from the next commit on.
func (f *feed) Follow(k cluster.JobKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed[k]++
}

// Unfollow takes back one Follow.
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
