package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// server is one server: a state, and a clock. Only the leader applies as the log
// grows. The others fall behind, and catch up when one of them leads and has
// something committed: until then a new leader sees an old state, as in raft.
//
// A server applies the log to a machine of its own, or is a view of one that all
// share. Views cost nothing, and are as good wherever it does not matter that the
// same log gives the same state.
type server struct {
	number int // from 0
	// machine is what the log is applied to, never nil.
	machine *machine
	// behind is the state that a view sees while it is behind, or nil.
	behind *statestore.Snapshot
	// seen is the index of the newest state that it saw when it last led.
	seen uint64
	// missed says that a view catches up with entries of which its feed has not
	// told.
	missed bool
	// ahead is how far its clock is ahead of the world's time.
	ahead time.Duration
	// pausedUntil is until when its process stands still, or long past.
	pausedUntil time.Time
}

// state is the newest state that the server has.
func (s *server) state() *statestore.Snapshot {
	if s.behind != nil {
		return s.behind
	}
	return s.machine.state()
}

// reader is how the server's drainer reads its state.
type reader struct {
	server *server
	looks  *looks // never nil
	drainer.StateReader
}

// looks are the looks that a drainer takes at the state in one step.
type looks struct {
	view  *statestore.Snapshot // the last, or nil
	count int
}

// Snapshot returns what the server sees.
func (r reader) Snapshot() drainer.View {
	r.looks.count++
	r.looks.view = r.server.state()
	if r.server.behind != nil {
		return r.server.behind
	}
	return r.StateReader.Snapshot()
}

// Subscribe returns a feed that tells of nothing that the server does not see.
func (r reader) Subscribe(wake chan<- struct{}) drainer.Feed {
	return &feed{Feed: r.StateReader.Subscribe(wake), server: r.server}
}

// feed keeps back what a server that is behind has not seen.
type feed struct {
	drainer.Feed
	server *server
}

// Take returns what has changed in the server's state.
func (f *feed) Take() drainer.Changes {
	if f.server.behind != nil {
		return drainer.Changes{}
	}
	changes := f.Feed.Take()
	if f.server.missed {
		changes.All, f.server.missed = true, false
	}
	return changes
}
