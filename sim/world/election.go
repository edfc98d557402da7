package world

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Election is how a term ends and another begins.
type Election struct {
	// Next is who leads, from 0; negative is the next server in turn.
	Next int
	// Lost says that what the old leader had in flight is lost, but for the first Kept
	// of its writes. Otherwise all of it survives in the log, before anything of the
	// next leader's.
	Lost bool
	Kept int
	// Believes is how long the old leader goes on believing that it leads: it sees
	// nothing new, and nothing that it proposes comes to anything. One that stands
	// still believes it at least until it runs again.
	Believes time.Duration
}

// Elect ends the leader's term and begins one on the next server.
func (w *World) Elect(survive bool) error {
	return w.Depose(Election{Next: -1, Lost: !survive})
}

// Depose ends the leader's term and begins another's.
func (w *World) Depose(e Election) error {
	if w.log.heir != nil { // it was to come before an entry that an election lets survive
		w.At(w.now, func() error { return w.Depose(e) })
		return nil
	}
	old, next := w.leader, w.next(e.Next)
	believes := w.believes(e, next)
	old.depose(believes > 0)
	if err := w.log.resign(old, e, next); err != nil {
		return fmt.Errorf("ending a term: %w", err)
	}
	for _, l := range slices.Clone(w.deposed) {
		if l.server == next {
			l.stepDown() // it hears of the election that it has won
		}
	}
	w.fallBehind(next)
	if believes == 0 {
		old.stepDown()
	} else {
		w.deposed = append(w.deposed, old)
		w.At(w.now.Add(believes), func() error { old.stepDown(); return nil })
	}
	if err := w.lead(next); err != nil {
		return err
	}
	w.flap()
	return nil
}

// next is who leads next: the server of that number, or the one after the leader if it
// is negative; or the first after that which is not cut off.
func (w *World) next(number int) *server {
	if number < 0 {
		number = w.leader.server.number + 1
	}
	next := w.servers[number%len(w.servers)]
	for next.cut {
		next = w.servers[(next.number+1)%len(w.servers)]
	}
	return next
}

// believes is how long the leader goes on believing that it leads when another does.
func (w *World) believes(e Election, next *server) time.Duration {
	old := w.leader.server
	if next == old {
		return 0 // a server knows what it is itself
	}
	believes := max(0, e.Believes)
	if old.paused(w.now) {
		believes = max(believes, old.pausedUntil.Sub(w.now))
	}
	if delay, strikes := w.strike(scenario.LeaderTwo, target{}); strikes {
		believes = max(believes, delay)
	}
	return believes
}

// depose has the leader see nothing new if it goes on believing that it leads.
func (l *leadership) depose(believes bool) {
	w := l.world
	l.deposed = true
	w.drop(l.schedulerActor)
	if believes && w.options.Views {
		l.server.behind = l.server.state()
	}
}

// fallBehind has a view that begins to lead see the state of some entries ago: as
// long as it did not lead, it heard of them late.
func (w *World) fallBehind(s *server) {
	w.leader.server.seen = w.leader.server.state().Index()
	if !w.options.Views || s == w.leader.server {
		return
	}
	first, _ := slices.BinarySearchFunc(w.history, s.seen, func(h *statestore.Snapshot, index uint64) int {
		return cmp.Compare(h.Index(), index)
	})
	s.behind = nil
	if could := w.history[first:]; len(could) > 0 {
		s.behind = could[w.streams.of("lag").IntN(len(could))]
	}
	if s.behind != nil && s.behind.Index() == s.machine.state().Index() {
		s.behind = nil
	}
}

// resign settles what a leader that is gone had in flight: its first writes survive
// in the log and are applied before anything of the next leader's, and the others are
// lost. What had not left its process is lost anyway. What clients and operators ask
// for, and nobody has answered, they ask of the next leader.
func (l *raftLog) resign(old *leadership, e Election, next *server) error {
	survive := math.MaxInt
	if e.Lost {
		survive = e.Kept
	}
	queue := l.queue
	l.queue, l.heir = nil, next
	defer func() { l.heir = nil }()
	var kept []*proposal
	for _, p := range queue {
		if p.from == nil && !p.answered {
			p.due = sooner(p.due, l.due(p.Source, l.world.now))
			kept = append(kept, p)
			continue
		}
		if survive > 0 && p.inLog(l.world.now) {
			survive--
			if err := l.append(p); err != nil {
				return err
			}
		}
		if p.from != nil {
			old.limbo = append(old.limbo, p)
		}
	}
	l.queue = append(kept, l.queue...)
	return nil
}

// append appends an entry that the next leader applies with its own first one.
func (l *raftLog) append(p *proposal) error {
	if p.Message == nil {
		return nil
	}
	if err := l.race(p.Message); err != nil {
		return err
	}
	l.add(logEntry{data: p.data, Entry: p.entry()})
	if l.world.options.Views {
		// The machine is the truth, whoever has seen it.
		if _, err := l.heir.machine.catchUp(l.entries); err != nil {
			return fmt.Errorf("applying entry %d: %w", len(l.entries), err)
		}
	}
	return nil
}
