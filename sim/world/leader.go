package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// leadership is what runs on a server while it leads, or believes that it does.
type leadership struct {
	world  *World
	server *server
	// term counts the leaderships of the world, from 1.
	term int

	drainer   *drainer.Term
	scheduler *scheduler.Scheduler
	// drains and schedules are how the two are woken.
	drains, schedules wakeUp
	// drainerActor and schedulerActor step them.
	drainerActor   *drainerActor
	schedulerActor *schedulerActor
	// established is when the drainer is enabled.
	established time.Time
	// looks are those of the drainer's step at the state.
	looks looks
	// caughtUp says that something of this term has been committed.
	caughtUp bool

	// The following are of one that was deposed and does not know.

	// limbo is what it proposed since, and what it was not told of.
	limbo []*proposal
	// until is when it finds out.
	until time.Time
}

// lead begins a term on a server.
func (w *World) lead(s *server) error {
	w.terms++
	l := &leadership{world: w, server: s, term: w.terms, drains: newWakeUp(), schedules: newWakeUp()}
	l.established = w.now.Add(w.draw("establish", w.options.Establish))
	config := w.options.Drainer
	config.Raft = shims.NewRaftApplier(proposals{log: &w.log, source: FromDrainer, from: l})
	config.NewEvalID = w.ids.eval
	var err error
	state := reader{server: s, looks: &l.looks, StateReader: w.options.Reader(s.machine.fsm.Store())}
	if l.drainer, err = drainer.NewTerm(config, state, l.drains.woken); err != nil {
		return fmt.Errorf("beginning a term of the drainer: %w", err)
	}
	l.scheduler, err = scheduler.New(scheduler.Config{
		Snapshot: func() scheduler.View { return s.state() },
		Applier:  shims.NewSchedulerApplier(proposals{log: &w.log, source: FromScheduler, from: l, answered: l.schedules.wake}),
		IDs:      scheduler.IDs{Alloc: w.ids.alloc, Eval: w.ids.eval},
	})
	if err != nil {
		return fmt.Errorf("beginning a term of the scheduler: %w", err)
	}
	l.drains.wake() // a goroutine begins with a step
	l.schedules.wake()
	l.drainerActor, l.schedulerActor = &drainerActor{l}, &schedulerActor{l}
	w.leader = l
	w.add(Drainer, l.drainerActor)
	w.add(Scheduler, l.schedulerActor)
	for _, f := range w.onElect {
		f(s.number)
	}
	return nil
}

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

// stepDown ends what a deposed leader believed: it is told that of nothing that it
// proposed the outcome is known.
func (l *leadership) stepDown() {
	w := l.world
	if l.drainerActor == nil {
		return // it knows
	}
	w.drop(l.drainerActor)
	l.drainerActor = nil
	l.drainer.Close()
	for _, f := range w.onEnd {
		f(l.term)
	}
	if w.options.Views && l.server != w.leader.server {
		l.server.behind = nil
	}
	w.deposed = slices.DeleteFunc(w.deposed, func(o *leadership) bool { return o == l })
	for _, p := range l.limbo {
		p.answer(unknown())
	}
	l.limbo = nil
}

// catchUp is called when something of the leader's is committed: by then it has
// applied everything before.
func (l *leadership) catchUp() {
	l.caughtUp = true
	if l.server.behind != nil {
		l.server.behind, l.server.missed = nil, true
		l.drains.wake()
		l.schedules.wake()
	}
}

// Clock is the time on the leader's clock.
func (w *World) Clock() time.Time { return w.leader.clock() }

// clock is the time on the server's clock.
func (l *leadership) clock() time.Time { return l.world.now.Add(l.server.ahead) }

// SetClock sets a server's clock: how far it is ahead of the world's time from
// now on.
func (w *World) SetClock(number int, ahead time.Duration) {
	s := w.servers[number]
	s.ahead = ahead
	for _, l := range append([]*leadership{w.leader}, w.deposed...) {
		if l.server == s {
			l.drains.jumped(w.now)
			l.schedules.jumped(w.now)
		}
	}
}

// Pause has a server's process stand still: it steps nothing, and what it has just
// proposed does not leave.
func (w *World) Pause(number int, d time.Duration) {
	s := w.servers[number]
	s.pausedUntil = later(s.pausedUntil, w.now.Add(d))
}

// awake is a time, or when the server runs again if that is later.
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

// drainerActor steps a server's drainer.
type drainerActor struct{ *leadership }

func (a *drainerActor) wants(now time.Time) time.Time {
	a.drains.notice(now, a.travel)
	at := a.drains.wants()
	if at.IsZero() {
		return at
	}
	return a.server.awake(later(at, a.established))
}

func (a *drainerActor) step() error {
	w := a.world
	if w.now.Before(a.established) || !a.drains.ready(w.now, a.server.ahead) {
		return nil
	}
	if delay, strikes := w.strike(scenario.LeaderPaused, target{}); strikes {
		w.Pause(a.server.number, delay)
	}
	stale, freezes := w.strike(scenario.ViewStale, target{})
	woken := len(a.drains.woken) > 0 || !a.drains.wokenAt.IsZero()
	a.drains.begin()
	a.looks = looks{}
	wakeAt := a.drainer.Step(a.clock())
	a.drains.set(wakeAt, a.server.ahead)
	if freezes {
		a.freeze(stale) // what it has just looked at is what it sees for a while
	}
	for _, f := range w.onDrainer {
		f(DrainerStep{
			Server: a.server.number, Term: a.term, Woken: woken, At: a.clock(), WakeAt: wakeAt,
			View: a.looks.view, Looks: a.looks.count,
		})
	}
	return nil
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

// schedulerActor steps the leader's scheduler.
type schedulerActor struct{ *leadership }

func (a *schedulerActor) wants(now time.Time) time.Time {
	a.schedules.notice(now, a.attention)
	return a.server.awake(a.schedules.wants())
}

func (a *schedulerActor) step() error {
	w := a.world
	if !a.schedules.ready(w.now, a.server.ahead) {
		return nil
	}
	if err := w.failEval(); err != nil {
		return err
	}
	a.schedules.begin()
	a.schedules.set(a.scheduler.Step(a.clock()), a.server.ahead)
	return nil
}
