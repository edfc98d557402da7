package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Election is how a term ends and another begins.
type Election struct {
	// Next is who leads, from 0; negative is the next server in turn.
	Next int
	// Lost says that what the old leader had proposed and not been told of is lost.
	// Otherwise it survives in the log, before anything of the next leader's.
	Lost bool
	// Believes is how long the old leader goes on believing that it leads: it sees
	// nothing new, and nothing that it proposes comes to anything.
	Believes time.Duration
}

// Elect ends the leader's term and begins one on the next server.
func (w *World) Elect(survive bool) error {
	return w.Depose(Election{Next: -1, Lost: !survive})
}

// Depose ends the leader's term and begins another's.
func (w *World) Depose(e Election) error {
	next := w.next(e.Next)
	old := w.leader
	if delay, strikes := w.strike(scenario.LeaderTwo, target{}); strikes {
		e.Believes = max(e.Believes, delay)
	}
	if next == old.server {
		e.Believes = 0 // a server knows what it is itself
	}
	old.until = w.now.Add(e.Believes)
	if e.Believes > 0 && old.server.behind == nil && w.options.Views {
		old.server.behind = old.server.state()
	}
	if err := w.log.resign(old, !e.Lost); err != nil {
		return fmt.Errorf("ending a term: %w", err)
	}
	w.drop(old.schedulerActor)
	w.elections++
	for _, l := range slices.Clone(w.deposed) {
		if l.server == next {
			l.stepDown()
		}
	}
	w.fallBehind(next)
	if e.Believes == 0 {
		old.stepDown()
	} else {
		w.deposed = append(w.deposed, old)
		w.At(old.until, func() error { old.stepDown(); return nil })
	}
	if err := w.lead(next); err != nil {
		return err
	}
	w.flap()
	return nil
}

// next is who leads next.
func (w *World) next(number int) *server {
	if number >= 0 {
		return w.servers[number%len(w.servers)]
	}
	return w.servers[(w.leader.server.number+1)%len(w.servers)]
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
	if could := w.history[first:]; len(could) > 0 {
		s.behind = could[w.streams.of("lag").IntN(len(could))]
	}
}

// resign settles what a leader that is gone had proposed: it survives in the log
// and is applied before anything of the next leader's, or is lost. What had not left
// its process is lost anyway. Clients and operators ask the next leader.
func (l *raftLog) resign(old *leadership, survive bool) error {
	var kept []*proposal
	for _, p := range l.queue {
		if p.from == nil {
			kept = append(kept, p)
			continue
		}
		if survive && !p.held && p.fate != Reject && p.fate != UnknownLost {
			if err := l.append(p); err != nil {
				return err
			}
		}
		old.limbo = append(old.limbo, p)
	}
	l.queue = kept
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
	l.add(p.data)
	l.survivors++
	if l.world.options.Views {
		// The machine is the truth, whoever has seen it.
		if _, err := l.world.leader.server.machine.catchUp(l.entries); err != nil {
			return fmt.Errorf("applying entry %d: %w", len(l.entries), err)
		}
	}
	return nil
}
