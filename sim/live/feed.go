package live

import (
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// feed is a store's feed, of which wake-ups come late, twice, together with the next,
// or for nothing, and which keeps back what its server does not see.
type feed struct {
	drainer.Feed
	server *peer
	woken  chan struct{} // capacity 1; the store sends to it
	closed chan struct{} // closed by Close
	// missed says that a job was followed while the server saw an older state than the
	// newest: what changed of it between the two nobody was told.
	missed atomic.Bool
}

// Take returns what has changed in what the server sees.
func (f *feed) Take() drainer.Changes {
	if f.server.view.frozen() != nil {
		return drainer.Changes{}
	}
	changes := f.Feed.Take()
	changes.All = f.missed.Swap(false) || changes.All
	return changes
}

// Follow asks to be told of a job.
func (f *feed) Follow(k cluster.JobKey) {
	f.Feed.Follow(k)
	if f.server.view.frozen() != nil {
		f.missed.Store(true)
	}
}

// Close ends the feed.
func (f *feed) Close() {
	f.Feed.Close()
	close(f.closed)
}

// forward carries wake-ups to the drainer until the feed is closed. While one is under
// way another is not lost: it waits in woken.
func (f *feed) forward(wake chan<- struct{}) {
	for {
		select {
		case <-f.closed:
			return
		case <-f.woken:
		}
		if !f.travel() {
			return
		}
		send(wake)
	}
}

// travel takes as long as a wake-up takes. It returns false if the feed was closed
// meanwhile.
func (f *feed) travel() bool {
	p := f.server.player
	delay := p.chance.draw("wake", p.scenario.Cluster.Wake)
	if later, strikes := p.faults.strike(scenario.WatchSpurious, target{}); strikes {
		time.AfterFunc(later, func() { send(f.woken) })
	}
	if longer, strikes := p.faults.strike(scenario.WatchDelay, target{}); strikes {
		delay += longer
	}
	var next <-chan struct{} // nil: never
	if longer, strikes := p.faults.strike(scenario.WatchCoalesce, target{}); strikes {
		delay, next = delay+longer, f.woken
	}
	if delay <= 0 {
		return true
	}
	select {
	case <-f.closed:
		return false
	case <-next: // it takes this one with it
	case <-time.After(delay):
	}
	return true
}

// send sends to a channel of capacity one, without blocking.
func send(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default: // a wake-up is there already
	}
}
