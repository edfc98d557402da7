package drainertest

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Time limits of the tests. A test that reaches one fails, and its blocked goroutine keeps running.
const (
	// CallLimit is how long one call to the tested part may take.
	CallLimit = 10 * time.Second
	// TestLimit is how long one test may take.
	TestLimit = 5 * time.Minute
)

// checksPerLimit is how often the watch checks all calls within CallLimit.
const checksPerLimit = 8

// watch fails a test whose call does not return.
type watch struct {
	callLimit time.Duration

	mu    sync.Mutex
	next  int           // guarded by mu
	calls map[int]*call // guarded by mu
}

// call is a call that has not returned.
type call struct {
	name string
	// checks is how many checks have found it running.
	checks int
}

// run runs a test within the time limits.
func (w *watch) run(test func() error) error {
	w.calls = map[int]*call{}
	done := make(chan error, 1)
	go func() { done <- test() }()
	tick := time.NewTicker(w.callLimit / checksPerLimit)
	defer tick.Stop()
	end := time.NewTimer(TestLimit)
	defer end.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if name := w.late(); name != "" {
				return fmt.Errorf("%s has not returned within %s", name, w.callLimit)
			}
		case <-end.C:
			return fmt.Errorf("the test has not ended within %s", TestLimit)
		}
	}
}

// late names the first call that has run for too long, or is empty.
func (w *watch) late() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range sortedKeys(w.calls, cmp.Compare) {
		c := w.calls[id]
		if c.checks++; c.checks > checksPerLimit {
			return c.name
		}
	}
	return ""
}

// began records a call. The function that it returns records that the call has returned.
func (w *watch) began(format string, args ...any) (returned func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.next
	w.next++
	w.calls[id] = &call{name: fmt.Sprintf(format, args...)}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.calls, id)
	}
}

// watchedStore is a store whose calls are watched.
type watchedStore struct {
	Store
	watch *watch
}

func (s watchedStore) Snapshot() rules.View {
	defer s.watch.began("Snapshot")()
	return s.Store.Snapshot()
}

func (s watchedStore) Subscribe(wake chan<- struct{}) drainer.Feed {
	defer s.watch.began("Subscribe")()
	return watchedFeed{s.Store.Subscribe(wake), s.watch}
}

func (s watchedStore) Commit(index uint64, rows Rows) error {
	defer s.watch.began("Commit of index %d: the send to wake must not block; it", index)()
	return s.Store.Commit(index, rows)
}

// watchedFeed is a feed whose calls are watched.
type watchedFeed struct {
	drainer.Feed
	watch *watch
}

func (f watchedFeed) Take() drainer.Changes {
	defer f.watch.began("Take")()
	return f.Feed.Take()
}

func (f watchedFeed) Follow(key cluster.JobKey) {
	defer f.watch.began("Follow")()
	f.Feed.Follow(key)
}

func (f watchedFeed) Unfollow(key cluster.JobKey) {
	defer f.watch.began("Unfollow")()
	f.Feed.Unfollow(key)
}

func (f watchedFeed) Close() {
	defer f.watch.began("Close")()
	f.Feed.Close()
}
