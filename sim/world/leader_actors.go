package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

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
