package rowview

import (
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Reader shows a drainer the newest view. Its feeds report that anything may have changed, so the
// drainer reads everything after every entry. The zero value shows an empty state. It is safe for
// concurrent use.
type Reader struct {
	mu    sync.Mutex
	view  *View   // nil while the state is empty; guarded by mu
	feeds []*feed // guarded by mu
}

var _ drainer.StateReader = (*Reader)(nil)

// Publish makes the view the newest, and wakes the drainer. Call it after each entry, in the
// order of the entries.
func (r *Reader) Publish(v *View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view = v
	for _, f := range r.feeds {
		f.changed = true
		select {
		case f.wake <- struct{}{}:
		default: // a wake-up is there already
		}
	}
}

// Snapshot is for [drainer.StateReader].
func (r *Reader) Snapshot() rules.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		r.view = New(0, nil, nil, nil, nil)
	}
	return r.view
}

// Subscribe is for [drainer.StateReader].
func (r *Reader) Subscribe(wake chan<- struct{}) drainer.Feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &feed{reader: r, wake: wake}
	r.feeds = append(r.feeds, f)
	return f
}

// feed reports that anything may have changed.
type feed struct {
	reader  *Reader
	wake    chan<- struct{}
	changed bool // guarded by reader.mu
}

func (f *feed) Take() drainer.Changes {
	f.reader.mu.Lock()
	defer f.reader.mu.Unlock()
	c := drainer.Changes{All: f.changed}
	f.changed = false
	return c
}

func (f *feed) Follow(cluster.JobKey)   {}
func (f *feed) Unfollow(cluster.JobKey) {}

func (f *feed) Close() {
	f.reader.mu.Lock()
	defer f.reader.mu.Unlock()
	f.reader.feeds = slices.DeleteFunc(f.reader.feeds, func(o *feed) bool { return o == f })
}
