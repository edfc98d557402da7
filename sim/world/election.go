package world

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Election is the end of one term and the start of the next.
type Election struct {
	// Next is the number of the next leader, from 0. Negative is the server after the
	// current leader.
	Next int
	// Lost: the writes that the old leader had in flight are lost, except the
	// first Kept. Otherwise all of them are committed before any entry of the next leader.
	Lost bool
	Kept int
	// Unaware is how long the old leader still acts as a leader. During that time it reads no new
	// state, and its writes have no effect. A paused leader acts as one until its pause ends.
	Unaware time.Duration
}

// Elect ends the term and starts one on the next server. survive decides whether the writes
// in flight are committed or lost.
func (ss *Servers) Elect(survive bool) error {
	return ss.Depose(Election{Next: -1, Lost: !survive})
}

// Depose ends the term and starts the next.
func (ss *Servers) Depose(e Election) error {
	w := ss.world
	if w.Log.successor != nil { // a hook requests an election while another election commits entries
		w.At(w.now, func() error { return ss.Depose(e) })
		return nil
	}
	old, next := ss.leader, ss.next(e.Next)
	unaware := ss.unaware(e, next)
	old.depose(unaware > 0)
	if err := w.Log.handOver(old, e, next); err != nil {
		return fmt.Errorf("ending a term: %w", err)
	}
	for _, l := range slices.Clone(ss.deposed) {
		if l.server == next {
			l.stepDown() // the winner of an election ends its older term
		}
	}
	ss.fallBehind(next)
	if unaware == 0 {
		old.stepDown()
	} else {
		ss.deposed = append(ss.deposed, old)
		w.At(w.now.Add(unaware), func() error { old.stepDown(); return nil })
	}
	if err := ss.lead(next); err != nil {
		return err
	}
	ss.flap()
	return nil
}

// next returns the server of a number, or the one after the leader if the number is negative.
// It skips servers that are cut off.
func (ss *Servers) next(number int) *server {
	if number < 0 {
		number = ss.leader.server.number + 1
	}
	next := ss.all[number%len(ss.all)]
	for next.cutOff {
		next = ss.all[(next.number+1)%len(ss.all)]
	}
	return next
}

// unaware returns how long the old leader still acts as a leader.
func (ss *Servers) unaware(e Election, next *server) time.Duration {
	old := ss.leader.server
	if next == old {
		return 0
	}
	unaware := max(0, e.Unaware)
	if old.paused(ss.world.now) {
		unaware = max(unaware, old.pausedUntil.Sub(ss.world.now))
	}
	if delay, strikes := ss.world.Faults.strike(scenario.LeaderTwo, target{}); strikes {
		unaware = max(unaware, delay)
	}
	return unaware
}

// fallBehind makes a view that starts to lead read one of the recent states, because followers
// receive entries late. The view does not read an older state than it has read before.
func (ss *Servers) fallBehind(s *server) {
	ss.leader.server.newest = ss.leader.server.state().Index()
	if !ss.world.options.Views || s == ss.leader.server {
		return
	}
	first, _ := slices.BinarySearchFunc(ss.recent, s.newest, func(h *statestore.Snapshot, index uint64) int {
		return cmp.Compare(h.Index(), index)
	})
	s.behind = nil
	if possible := ss.recent[first:]; len(possible) > 0 {
		s.behind = possible[ss.world.chance.stream("lag").IntN(len(possible))]
	}
	if s.behind != nil && s.behind.Index() == s.replica.state().Index() {
		s.behind = nil
	}
}

// shortestTerm is the shortest term that [scenario.LeaderFlap] ends. With terms of length zero,
// the time would never move on.
const shortestTerm = 10 * time.Millisecond

// flap ends the new term soon if a fault strikes.
func (ss *Servers) flap() {
	if delay, strikes := ss.world.Faults.strike(scenario.LeaderFlap, target{}); strikes {
		ss.loseLeaderIn(max(delay, shortestTerm), scenario.LeaderFlap)
	}
}

// loseLeaderIn ends the term after a delay, unless it has already ended.
func (ss *Servers) loseLeaderIn(d time.Duration, why scenario.FaultName) {
	term := ss.terms
	ss.world.Faults.after(d, func() error {
		if ss.terms != term {
			return nil
		}
		return ss.loseLeader(why)
	})
}

// loseLeader ends the term. It draws how many of the writes in flight survive.
func (ss *Servers) loseLeader(why scenario.FaultName) error {
	chance := ss.world.chance.stream("survive/" + string(why))
	e := Election{Next: -1, Lost: chance.IntN(2) == 1}
	if inFlight := ss.world.Log.inFlight(); e.Lost && inFlight > 1 {
		e.Kept = chance.IntN(inFlight)
	}
	return ss.Depose(e)
}

// Forget elects the leader's server again. A new drainer, without the memory of the old one, starts
// with the same state.
func (ss *Servers) Forget() error {
	return ss.Depose(Election{Next: ss.leader.server.number})
}

// Restore makes the leader's server restore a snapshot of its own state, like an operator who
// restores a backup. The drainer takes one step on the replaced store. Then the server starts a
// new term on the new store.
func (ss *Servers) Restore() error {
	l := ss.leader
	r := l.server.replica
	taken := r.state()
	snapshot, err := r.fsm.Snapshot()
	if err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	defer snapshot.Release()
	var sink memorySink
	if err := snapshot.Persist(&sink); err != nil {
		return fmt.Errorf("persisting a snapshot: %w", err)
	}
	if err := r.fsm.Restore(io.NopCloser(&sink.Buffer)); err != nil {
		return fmt.Errorf("restoring a snapshot: %w", err)
	}
	ss.world.observer.Restored(taken, r.state())
	l.reader.abandoned = true
	l.notifyEnd() // the feed of the replaced store reports it to the drainer
	if !l.server.paused(ss.world.now) && !ss.world.now.Before(l.established) {
		l.drainerActor.run()
	}
	return ss.Forget()
}

// memorySink is a raft.SnapshotSink in memory.
type memorySink struct{ bytes.Buffer }

var _ raft.SnapshotSink = (*memorySink)(nil)

func (*memorySink) ID() string    { return "in memory" }
func (*memorySink) Cancel() error { return nil }
func (*memorySink) Close() error  { return nil }
