package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/collect"
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
	// busy says that a request has no answer yet.
	busy bool
	// found says that the present round has made a request.
	found bool
	// settled is the index of a state in which no later round finds anything, or zero.
	settled uint64
}

func newCollectorActor(l *leadership) (*collectorActor, error) {
	age := l.world.options.Collect
	collector, err := collect.NewCollector(setting.Collection(age), l.clock())
	if err != nil {
		return nil, err
	}
	a := &collectorActor{leadership: l, collector: collector, alarm: newAlarm()}
	a.alarm.startStep(l.clock()) // so that the alarm notices a clock that is set back
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

// nextStep is zero in a settled state, so that a world without other events becomes idle.
func (a *collectorActor) nextStep(time.Time) time.Time {
	if a.busy || a.settled > 0 && a.settled == a.server.state().Index() {
		return time.Time{}
	}
	return a.server.afterPause(a.alarm.next())
}

func (a *collectorActor) step() error {
	if !a.alarm.ready(a.world.now, a.server.ahead) {
		return nil
	}
	now, state := a.clock(), a.server.state()
	a.alarm.startStep(now)
	searched := !now.Before(a.wakeAt)
	request, wakeAt := a.collector.Step(state, now)
	if request == nil {
		if searched && !a.found && newestTime(state).Before(now.Add(-a.world.options.Collect)) {
			a.settled = state.Index()
		}
		a.found = a.found && !searched
		a.wait(wakeAt)
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

// newestTime is the newest of the times to which the ages of ended rows count.
func newestTime(state *statestore.Snapshot) (newest time.Time) {
	for a := range state.Allocs() {
		newest = later(newest, a.ModifyTime)
	}
	for e := range state.Evals() {
		newest = later(newest, e.ModifyTime)
	}
	for n := range state.Nodes() {
		newest = later(newest, n.StatusChangedAt)
	}
	return newest
}
