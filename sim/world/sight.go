package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// sight is how the drainer of one term sees its server's state. What it is shown and
// what it is told of always fit: while it is kept from newer states, no feed tells of
// them, and nothing that a feed has told of is missing in what it is shown.
type sight struct {
	drainer.StateReader // of the server's store, never nil
	server              *server
	// stale is the state that it sees for now and no other, or nil.
	stale *statestore.Snapshot
	// abandoned says that the store was replaced. That is news of no state: its feeds
	// tell of it whatever else they keep back.
	abandoned bool
	feeds     []*feed
	looks     looks
}

// looks are the looks that a drainer takes at the state in one step.
type looks struct {
	view  *statestore.Snapshot // the last, or nil
	count int
}

// sight returns another pair of eyes for the server's state.
func (w *World) sight(s *server) *sight {
	return &sight{StateReader: w.options.Reader(s.machine.fsm.Store()), server: s}
}

// held reports whether it sees an older state than its server's store has.
func (s *sight) held() bool { return s.stale != nil || s.server.behind != nil }

// state is what it sees.
func (s *sight) state() *statestore.Snapshot {
	if s.stale != nil {
		return s.stale
	}
	return s.server.state()
}

// Snapshot returns what it sees.
func (s *sight) Snapshot() rules.View {
	s.looks.count++
	s.looks.view = s.state()
	if s.held() {
		return s.looks.view
	}
	return s.StateReader.Snapshot()
}

// Subscribe returns a feed that tells of nothing that is not seen.
func (s *sight) Subscribe(wake chan<- struct{}) drainer.Feed {
	rung := make(chan struct{}, 1)
	f := &feed{Feed: s.StateReader.Subscribe(rung), sight: s, rung: rung, wake: wake}
	s.feeds = append(s.feeds, f)
	return f
}

// freeze has it see no newer state than now, for a while.
func (s *sight) freeze(w *World, d time.Duration) {
	if s.stale != nil || d <= 0 {
		return
	}
	frozen := s.server.state()
	s.stale = frozen
	w.after(d, func() error {
		s.stale = nil
		for _, f := range s.feeds {
			if f.followed && s.server.state().Index() > frozen.Index() {
				f.miss()
			}
			f.followed = false
		}
		return nil
	})
}

// catchUp has it see the newest state of a server that was behind.
func (s *sight) catchUp() {
	for _, f := range s.feeds {
		f.miss()
	}
}

// pass passes on that there is news.
func (s *sight) pass() {
	if s.held() {
		return
	}
	for _, f := range s.feeds {
		f.pass()
	}
}

// feed keeps back what is not seen.
type feed struct {
	drainer.Feed
	sight *sight
	// rung has capacity 1: the store has news, which has not been passed on.
	rung chan struct{}
	wake chan<- struct{}
	// missed says that it has not told of everything that is seen from now on.
	// followed says that a job was followed that the store told of since the state
	// that is seen, when nobody had asked.
	missed, followed bool
}

// miss notes that it has not told of everything.
func (f *feed) miss() {
	f.missed = true
	send(f.rung)
}

// pass wakes whoever is subscribed, if there is news.
func (f *feed) pass() {
	select {
	case <-f.rung:
		send(f.wake)
	default:
	}
}

// Take returns what has changed in what is seen.
func (f *feed) Take() drainer.Changes {
	if f.sight.held() {
		return drainer.Changes{Abandoned: f.sight.abandoned}
	}
	changes := f.Feed.Take()
	changes.All = changes.All || f.missed
	f.missed = false
	return changes
}

// Follow asks to be told of a job.
func (f *feed) Follow(k cluster.JobKey) {
	f.Feed.Follow(k)
	f.followed = f.followed || f.sight.held()
}
