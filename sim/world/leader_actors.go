package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drainerActor steps a server's drainer.
type drainerActor struct{ *leadership }

func (a *drainerActor) wants(now time.Time) time.Time {
	a.sight.pass()
	a.drains.notice(now, a.travel)
	at := a.drains.wants()
	if at.IsZero() {
		return at
	}
	return a.server.awake(later(at, a.established))
}

func (a *drainerActor) step() error {
	if a.world.now.Before(a.established) || !a.drains.ready(a.world.now, a.server.ahead) {
		return nil
	}
	if a.deposed { // what it does comes to nothing, and so would faults
		a.run()
		return nil
	}
	if delay, strikes := a.world.strike(scenario.LeaderPaused, target{}); strikes {
		a.world.Pause(a.server.number, delay)
	}
	stale, freezes := a.world.strike(scenario.ViewStale, target{})
	a.run()
	a.world.mayJump(a.server)
	if freezes { // what it has just looked at is what it sees for a while
		a.sight.freeze(a.world, stale)
	}
	return nil
}

// run steps the drainer.
func (a *drainerActor) run() {
	a.world.spent.drainer()
	woken := a.drains.pending()
	a.drains.begin(a.clock())
	a.sight.looks = looks{}
	wakeAt := a.drainer.Step(a.clock())
	a.drains.set(wakeAt, a.server.ahead)
	a.world.hash.add(uint64(wakeAt.Sub(Epoch)))
	for _, f := range a.world.onDrainer {
		f(DrainerStep{
			Server: a.server.number, Term: a.term, Woken: woken, At: a.clock(), WakeAt: wakeAt,
			View: a.sight.looks.view, Looks: a.sight.looks.count, Held: a.sight.held(),
		})
	}
}

// schedulerActor steps the leader's scheduler.
type schedulerActor struct{ *leadership }

func (a *schedulerActor) wants(now time.Time) time.Time {
	a.schedules.notice(now, a.attention)
	return a.server.awake(a.schedules.wants())
}

func (a *schedulerActor) step() error {
	if !a.schedules.ready(a.world.now, a.server.ahead) {
		return nil
	}
	if err := a.world.failEvals(); err != nil {
		return err
	}
	a.schedules.begin(a.clock())
	a.schedules.set(a.scheduler.Step(a.clock()), a.server.ahead)
	return nil
}
