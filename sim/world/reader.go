package world

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// reader reads a server's state for one drainer. Its snapshots and feeds agree. While it hides
// newer states, no feed reports their changes. Its snapshots contain every change that a feed
// has reported.
type reader struct {
	drainer.StateReader // of the server's store, never nil
	server              *server
	// stale is the old state that the reader returns while a fault makes it stale, or nil.
	stale *statestore.Snapshot
	// abandoned: the store was replaced. Feeds report that even while the reader
	// hides newer states.
	abandoned bool
	feeds     []*feed
	// view is the last state that the current step read, or nil. reads counts the reads.
	view  *statestore.Snapshot
	reads int
}

// newReader returns a reader of a server's state.
func (ss *Servers) newReader(s *server) *reader {
	return &reader{StateReader: ss.world.options.Reader(s.replica.fsm.Store()), server: s}
}

// held reports whether the reader hides the newest state of the server's store.
func (r *reader) held() bool { return r.stale != nil || r.server.behind != nil }

// state returns the state that the reader shows.
func (r *reader) state() *statestore.Snapshot {
	if r.stale != nil {
		return r.stale
	}
	return r.server.state()
}

// Snapshot returns the state that the reader shows.
func (r *reader) Snapshot() rules.View {
	r.reads++
	r.view = r.state()
	if r.held() {
		return r.view.DrainView()
	}
	return r.StateReader.Snapshot()
}

// Subscribe returns a feed of the changes in the states that the reader shows.
func (r *reader) Subscribe(wake chan<- struct{}) drainer.Feed {
	storeWake := make(chan struct{}, 1)
	f := &feed{Feed: r.StateReader.Subscribe(storeWake), reader: r, storeWake: storeWake, wake: wake, follows: map[cluster.JobKey]int{}}
	r.feeds = append(r.feeds, f)
	return f
}

// freeze hides newer states than the current one for a duration.
func (r *reader) freeze(w *World, d time.Duration) {
	if r.stale != nil || d <= 0 {
		return
	}
	frozen := r.server.state()
	r.stale = frozen
	w.Faults.undoAfter(d, func() error {
		r.stale = nil
		for _, f := range r.feeds {
			if f.followed && r.server.state().Index() > frozen.Index() {
				f.miss()
			}
			f.followed = false
		}
		return nil
	})
}

// catchUp makes all feeds report that anything may have changed, because the server was behind.
func (r *reader) catchUp() {
	for _, f := range r.feeds {
		f.miss()
	}
}

// forwardWakes forwards the store's wake-ups, unless newer states are hidden.
func (r *reader) forwardWakes() {
	if r.held() {
		return
	}
	for _, f := range r.feeds {
		select {
		case <-f.storeWake:
			send(f.wake)
		default:
		}
	}
}

// feed reports the changes of the store that its reader shows.
type feed struct {
	drainer.Feed
	reader *reader
	// storeWake has capacity 1. It holds a wake-up of the store that the reader has not
	// forwarded to wake.
	storeWake chan struct{}
	wake      chan<- struct{}
	// missed: the feed has not reported every change of the current state.
	missed bool
	// followed: the drainer followed a job while the reader hid newer states. The
	// job may have changed after the shown state and before that call.
	followed bool
	// follows counts how often the drainer follows each job.
	follows map[cluster.JobKey]int
}

// miss makes the next Take report that anything may have changed.
func (f *feed) miss() {
	f.missed = true
	send(f.storeWake)
}

// Take returns the changes since the last call.
func (f *feed) Take() drainer.Changes {
	if f.reader.held() {
		return drainer.Changes{Abandoned: f.reader.abandoned}
	}
	changes := f.Feed.Take()
	changes.All = changes.All || f.missed
	f.missed = false
	return changes
}

// Follow makes the feed report the changes of a job.
func (f *feed) Follow(k cluster.JobKey) {
	f.Feed.Follow(k)
	f.follows[k]++
	f.followed = f.followed || f.reader.held()
}

// Unfollow cancels one call of Follow.
func (f *feed) Unfollow(k cluster.JobKey) {
	f.Feed.Unfollow(k)
	if f.follows[k]--; f.follows[k] <= 0 {
		delete(f.follows, k)
	}
}

// followed returns the jobs that the drainer follows, sorted.
func (r *reader) followed() []cluster.JobKey {
	var jobs []cluster.JobKey
	for _, f := range r.feeds {
		for job := range f.follows {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, cluster.JobKey.Compare)
	return jobs
}
