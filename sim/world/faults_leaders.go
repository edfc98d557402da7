package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// loseLeader ends the term before the answer to the write that it is about.
func (w *World) loseLeader() {
	delay, strikes := w.strike(scenario.LeaderLoseMidBatch, target{})
	if !strikes {
		return
	}
	term := w.terms
	survive := w.streams.of("survive").IntN(2) == 0
	w.At(w.now.Add(delay), func() error {
		if w.terms != term {
			return nil // it has ended by itself
		}
		return w.Elect(survive)
	})
}

// flap ends a term that begins while the leader is to flap.
func (w *World) flap() {
	delay, strikes := w.strike(scenario.LeaderFlap, target{})
	if !strikes {
		return
	}
	term := w.terms
	survive := w.streams.of("survive").IntN(2) == 0
	w.At(w.now.Add(delay), func() error {
		if w.terms != term {
			return nil
		}
		return w.Elect(survive)
	})
}

// freeze has the server see no newer state than it does now, for a while.
func (l *leadership) freeze(d time.Duration) {
	w := l.world
	if !w.options.Views || l.server.behind != nil || d <= 0 {
		return
	}
	frozen := l.server.state()
	l.server.behind = frozen
	w.At(w.now.Add(d), func() error {
		if l.server.behind == frozen && l == w.leader {
			l.server.behind = nil
			l.drains.wake()
			l.schedules.wake()
		}
		return nil
	})
}
