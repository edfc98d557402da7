package world

import (
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

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
