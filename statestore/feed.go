package statestore

import (
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

type changes struct{}

type feeds struct {
	mu  sync.Mutex
	all []*feed
}

func (f *feeds) publish(w *written) {}
func (f *feeds) abandon()           {}

type feed struct{ mu sync.Mutex }

var _ drainer.Feed = (*feed)(nil)

// Subscribe returns a feed of what changes from now on. After each commit that
// the feed has something to tell of, the store sends to wake without blocking.
func (s *Store) Subscribe(wake chan<- struct{}) drainer.Feed { return &feed{} }

func (f *feed) Take() drainer.Changes   { return drainer.Changes{} }
func (f *feed) Follow(cluster.JobKey)   {}
func (f *feed) Unfollow(cluster.JobKey) {}
func (f *feed) Close()                  {}
