package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// collectorActor deletes ended work while a server leads.
type collectorActor struct {
	*leadership
	collector *collect.Collector
	alarm     alarm
	// wakeAt is the time on the server's clock at which the collector has something to do.
	wakeAt time.Time
	// busy: a request has no answer yet.
	busy bool
	// found: the present round has sent a request.
	found bool
	// settled: a round found nothing in the state of settledAt, an index. In this state
	// the alarm is set to the time at which a row comes of age, or never fires. A server that has
	// applied no entry has the index 0.
	settled   bool
	settledAt uint64
}

func newCollectorActor(l *leadership) (*collectorActor, error) {
	age := l.world.options.Collect
	allocs := 0
	for range l.server.state().Allocs() {
		allocs++
	}
	collector, err := collect.NewCollector(setting.Collection(age, allocs), l.clock())
	if err != nil {
		return nil, err
	}
	a := &collectorActor{leadership: l, collector: collector, alarm: newAlarm()}
	a.alarm.startStep(l.clock()) // so that the alarm detects a clock that is set back
	a.wait(l.clock().Add(age))
	return a, nil
}

// wait sets the time of the next step. If the clock was set back while a request had no answer, the
// time is wrong, and the actor reads the clock again soon.
func (a *collectorActor) wait(wakeAt time.Time) {
	a.wakeAt = wakeAt
	a.alarm.set(wakeAt, a.server.ahead)
	if a.clock().Before(a.alarm.stepped) {
		a.alarm.clockSet(a.world.now)
	}
}

// nextStep skips the rounds that find nothing in a settled state, so that a world without other
// events becomes idle.
func (a *collectorActor) nextStep(time.Time) time.Time {
	if a.busy {
		return time.Time{}
	}
	if a.settledAt != a.server.state().Index() {
		a.unsettle()
	}
	return a.server.afterPause(a.alarm.next())
}

// unsettle returns to the round that is next.
func (a *collectorActor) unsettle() {
	if a.settled {
		a.settled = false
		a.wait(a.roundAfter(a.clock()))
	}
}

// roundAfter returns the time of the next round on the server's clock.
func (a *collectorActor) roundAfter(now time.Time) time.Time {
	age := a.world.options.Collect
	if skipped := now.Sub(a.wakeAt); skipped > 0 {
		return a.wakeAt.Add((skipped + age - 1) / age * age)
	}
	return a.wakeAt
}

// settle waits for the round that finds a row, after one that found nothing in a state.
func (a *collectorActor) settle(state *statestore.Snapshot, now time.Time) {
	age := a.world.options.Collect
	a.settled, a.settledAt = true, state.Index()
	next := a.wakeAt
	if ripe := firstAfter(state, now.Add(-age)); ripe.IsZero() {
		a.wait(time.Time{})
	} else {
		a.wait(a.roundAfter(ripe.Add(age)))
	}
	a.wakeAt = next
}

func (a *collectorActor) step() error {
	if !a.alarm.ready(a.world.now, a.server.ahead) {
		return nil
	}
	now, state := a.clock(), a.server.state()
	a.alarm.startStep(now)
	searched := !now.Before(a.wakeAt)
	request, wakeAt := a.collector.Step(state.WorkView(), now)
	if request == nil {
		quiet := searched && !a.found
		a.found = a.found && !searched
		a.wait(wakeAt)
		if quiet {
			a.settle(state, now)
		}
		return nil
	}
	a.found, a.busy = true, true
	writer := proposals{log: a.world.Log, source: FromCollector, from: a.leadership}
	queued := writer.Propose(&shims.Collect{At: now, Request: *request}, func(shims.Answer) {
		a.busy = false
		a.wait(wakeAt)
	})
	if !queued {
		a.busy = false
		a.wait(wakeAt)
	}
	return nil
}

// firstAfter returns the earliest time that is not before after and from which the age of an ended
// row counts, or zero.
func firstAfter(state *statestore.Snapshot, after time.Time) (first time.Time) {
	note := func(t time.Time) {
		if !t.Before(after) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for a := range state.Allocs() {
		note(a.ModifyTime)
	}
	for e := range state.Evals() {
		note(e.ModifyTime)
	}
	for n := range state.Nodes() {
		note(n.StatusChangedAt)
	}
	return first
}
