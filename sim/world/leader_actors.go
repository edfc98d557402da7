package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drainerActor steps the drainer of a term.
type drainerActor struct{ *leadership }

func (a *drainerActor) nextStep(now time.Time) time.Time {
	a.reader.forwardWakes()
	a.drainerAlarm.receive(now, a.drainerDelay)
	at := a.drainerAlarm.next()
	if at.IsZero() {
		return at
	}
	return a.server.afterPause(later(at, a.established))
}

func (a *drainerActor) step() error {
	if a.world.now.Before(a.established) || !a.drainerAlarm.ready(a.world.now, a.server.ahead) {
		return nil
	}
	if a.deposed { // the writes of a deposed leader have no effect, so a fault would have none either
		a.run()
		return nil
	}
	if pause, strikes := a.world.Faults.strike(scenario.LeaderPaused, target{}); strikes {
		a.world.Servers.Pause(a.server.number, pause)
	}
	stale, freezes := a.world.Faults.strike(scenario.ViewStale, target{})
	a.run()
	a.setClockIfStruck()
	if freezes { // the drainer reads no newer state than this one until the fault ends
		a.reader.freeze(a.world, stale)
	}
	return nil
}

// run steps the drainer.
func (a *drainerActor) run() {
	w := a.world
	w.counts.drainerStep()
	woken := a.drainerAlarm.pending()
	a.drainerAlarm.startStep(a.clock())
	a.reader.view, a.reader.looks = nil, 0
	wakeAt := a.drainer.Step(a.clock())
	a.drainerAlarm.set(wakeAt, a.server.ahead)
	w.hash.add(uint64(wakeAt.Sub(Epoch)))
	for _, o := range w.observers {
		if o.Stepped != nil {
			o.Stepped(DrainerStep{
				Server: a.server.number, Term: a.term, Woken: woken, At: a.clock(), WakeAt: wakeAt,
				View: a.reader.view, Looks: a.reader.looks, Held: a.reader.held(),
			})
		}
	}
}

// schedulerActor steps the leader's scheduler.
type schedulerActor struct{ *leadership }

func (a *schedulerActor) nextStep(now time.Time) time.Time {
	a.schedulerAlarm.receive(now, a.schedulerDelay)
	return a.server.afterPause(a.schedulerAlarm.next())
}

func (a *schedulerActor) step() error {
	if !a.schedulerAlarm.ready(a.world.now, a.server.ahead) {
		return nil
	}
	if err := a.failEvals(); err != nil {
		return err
	}
	a.schedulerAlarm.startStep(a.clock())
	a.schedulerAlarm.set(a.scheduler.Step(a.clock()), a.server.ahead)
	return nil
}

// failEvals makes evaluations of drains fail right before the scheduler processes them, if a
// fault strikes. Each evaluation is one opportunity for the fault.
func (a *schedulerActor) failEvals() error {
	w := a.world
	if !w.Faults.armedAny(scenario.SchedFailEval) {
		return nil
	}
	for e := range w.Truth().PendingEvals() {
		if e.TriggeredBy != cluster.TriggerNodeDrain || w.Faults.evals[e.ID] {
			continue
		}
		w.Faults.evals[e.ID] = true
		if _, strikes := w.Faults.strike(scenario.SchedFailEval, target{Group: &cluster.GroupKey{Job: e.JobKey()}}); !strikes {
			continue
		}
		failed := e.Copy()
		failed.Status, failed.StatusDescription = cluster.EvalFailed, "simulated: too many attempts"
		if err := w.Setup.Commit(&shims.EvalUpdate{Evals: []*cluster.Evaluation{failed}}); err != nil {
			return err
		}
	}
	return nil
}
