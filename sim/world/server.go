package world

import (
	"time"

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
	// ahead is how far its clock is ahead of the world's time.
	ahead time.Duration
	// pausedUntil is until when its process stands still, or long past; cut says that it
	// is for good, so that it never leads again.
	pausedUntil time.Time
	cut         bool
}

// startServers starts the servers.
func (w *World) startServers() {
	var shared *machine
	for i := range w.options.Servers {
		s := &server{number: i, machine: shared}
		if s.machine == nil {
			s.machine = newMachine(func(a Applied) { w.observe(i, a) })
		}
		if w.options.Views {
			shared = s.machine
		}
		w.servers = append(w.servers, s)
	}
}

// state is the newest state that the server has.
func (s *server) state() *statestore.Snapshot {
	if s.behind != nil {
		return s.behind
	}
	return s.machine.state()
}

// SetClock sets a server's clock: how far it is ahead of the world's time from
// now on.
func (w *World) SetClock(number int, ahead time.Duration) {
	s := w.servers[number]
	s.ahead = ahead
	for _, l := range append([]*leadership{w.leader}, w.deposed...) {
		if l.server == s {
			l.drains.jumped(w.now)
			l.schedules.jumped(w.now)
			l.tellClock()
		}
	}
}

// tellClock tells those who observe of the clock by which a term runs.
func (l *leadership) tellClock() {
	for _, f := range l.world.onClock {
		f(l.term, l.server.ahead)
	}
}

// Pause has a server's process stand still: it steps nothing, and if it leads,
// nothing is written and nothing that was just proposed leaves.
func (w *World) Pause(number int, d time.Duration) {
	s := w.servers[number]
	s.pausedUntil = later(s.pausedUntil, w.now.Add(d))
}

// paused reports whether the server's process stands still.
func (s *server) paused(now time.Time) bool { return now.Before(s.pausedUntil) }

// awake is a time, or when the server runs again if that is later; zero stays zero.
func (s *server) awake(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return later(at, s.pausedUntil)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
