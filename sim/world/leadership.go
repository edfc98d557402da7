package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// leadership is a server's term: the drainer and the scheduler that run while the server
// leads, or acts as if it did.
type leadership struct {
	world  *World
	server *server
	term   int // from 1

	drainer   *drainer.Term
	scheduler *scheduler.Scheduler
	// reader reads the server's state for the drainer.
	reader *reader
	// The alarms decide when to step the drainer and the scheduler; the actors step them.
	// drainerActor is nil after the leader has stepped down.
	drainerAlarm, schedulerAlarm alarm
	drainerActor                 *drainerActor
	schedulerActor               *schedulerActor
	// collector is nil if nothing is collected.
	collector *collectorActor
	// volumesActor is nil without volumes.
	volumesActor *volumesActor
	confirmActor *confirmActor
	// established is the time from which the drainer may step.
	established time.Time
	// deposed: the term has ended. The drainer may still step.
	deposed bool
	// unanswered are the writes that had no answer when the term ended, and those that
	// the drainer proposed afterwards.
	unanswered []*proposal
}

// lead starts a term on a server.
func (ss *Servers) lead(s *server) error {
	w := ss.world
	ss.terms++
	l := &leadership{world: w, server: s, term: ss.terms, reader: ss.newReader(s), drainerAlarm: newAlarm(), schedulerAlarm: newAlarm()}
	l.established = w.now.Add(w.chance.draw("establish", w.options.Establish))
	config := w.options.Drainer
	config.Raft = shims.NewDrainerApplier(proposals{log: w.Log, source: FromDrainer, from: l})
	config.NewEvalID = w.ids.eval
	var err error
	if l.drainer, err = drainer.NewTerm(config, l.reader, l.drainerAlarm.woken); err != nil {
		return fmt.Errorf("starting the drainer: %w", err)
	}
	l.scheduler, err = scheduler.New(scheduler.Config{
		Snapshot: func() scheduler.View { return s.state().WorkView() },
		Applier:  shims.NewSchedulerApplier(proposals{log: w.Log, source: FromScheduler, from: l, answered: l.schedulerAlarm.wake, late: l.answerDelay}),
		IDs:      scheduler.IDs{Alloc: w.ids.alloc, Eval: w.ids.eval},
	})
	if err != nil {
		return fmt.Errorf("starting the scheduler: %w", err)
	}
	l.drainerAlarm.wake() // a real goroutine starts with a step
	l.schedulerAlarm.wake()
	l.drainerActor, l.schedulerActor = &drainerActor{l}, &schedulerActor{l}
	ss.leader = l
	w.add(Drainer, l.drainerActor)
	w.add(Scheduler, l.schedulerActor)
	if w.options.Collect > 0 {
		if l.collector, err = newCollectorActor(l); err != nil {
			return fmt.Errorf("starting the collector: %w", err)
		}
		w.add(Collector, l.collector)
	}
	if w.options.Storage != nil {
		l.volumesActor = newVolumesActor(l)
		w.add(Volumes, l.volumesActor)
	}
	l.confirmActor = &confirmActor{leadership: l}
	w.add(Confirmer, l.confirmActor)
	w.hash.add(uint64(l.term), uint64(s.number))
	w.observer.Elected(s.number)
	l.notifyClock()
	return nil
}

// catchUp makes the leader read the newest state. The log calls it when an entry of the term is
// committed, because the leader has then applied every earlier entry.
func (l *leadership) catchUp() {
	if l.server.behind != nil {
		l.server.behind = nil
		l.reader.catchUp()
	}
}

// depose ends the term. If the leader still acts as one, it reads no newer state.
func (l *leadership) depose(unaware bool) {
	l.deposed = true
	l.world.drop(l.schedulerActor)
	if l.collector != nil {
		l.world.drop(l.collector)
	}
	if l.volumesActor != nil {
		l.world.drop(l.volumesActor)
	}
	l.world.drop(l.confirmActor)
	if unaware && l.world.options.Views {
		l.server.behind = l.server.state()
	}
}

// stepDown ends the drainer of a deposed leader. It answers the leader's unanswered
// writes with an unknown outcome.
func (l *leadership) stepDown() {
	if l.drainerActor == nil {
		return // it has stepped down
	}
	ss := l.world.Servers
	l.world.drop(l.drainerActor)
	l.drainerActor = nil
	l.drainer.Close()
	l.notifyEnd()
	if l.world.options.Views && l.server != ss.leader.server {
		l.server.behind = nil
	}
	ss.deposed = slices.DeleteFunc(ss.deposed, func(o *leadership) bool { return o == l })
	for _, p := range l.unanswered {
		p.answer(unknown())
	}
	l.unanswered = nil
}

func (l *leadership) notifyEnd() {
	l.world.observer.TermEnded(l.term)
}

func (l *leadership) notifyClock() {
	l.world.observer.ClockSet(l.term, l.server.ahead)
}

// clock is the time on the server's clock.
func (l *leadership) clock() time.Time { return l.world.now.Add(l.server.ahead) }

// drainerDelay draws the delay of a wake-up of the drainer. If merges is true, the wake-up
// arrives earlier if the next one arrives before the delay has passed.
func (l *leadership) drainerDelay() (delay time.Duration, merges bool) {
	w := l.world
	delay = w.chance.draw("wake", w.options.Wake)
	if len(w.Faults.armed) == 0 || l.drainerAlarm.spurious {
		return delay, false
	}
	if after, strikes := w.Faults.strike(scenario.WatchSpurious, target{}); strikes {
		w.Faults.after(after, func() error { l.drainerAlarm.wakeSpuriously(); return nil })
	}
	if more, strikes := w.Faults.strike(scenario.WatchDelay, target{}); strikes {
		delay += more
	}
	if more, strikes := w.Faults.strike(scenario.WatchCoalesce, target{}); strikes {
		return delay + more, true
	}
	return delay, false
}

// schedulerDelay draws the delay of a wake-up of the scheduler.
func (l *leadership) schedulerDelay() (delay time.Duration, merges bool) {
	w := l.world
	delay = w.chance.draw("schedule", w.options.Schedule)
	if more, strikes := w.Faults.strike(scenario.SchedSlow, target{}); strikes {
		delay += more
	}
	return delay, false
}

// answerDelay draws the time from the apply of a write of the scheduler to its answer.
func (l *leadership) answerDelay() time.Duration {
	delay, _ := l.world.Faults.strike(scenario.SchedLateAnswer, target{})
	return delay
}

// setClockIfStruck sets the server's clock if a clock fault strikes.
func (l *leadership) setClockIfStruck() {
	f := l.world.Faults
	if len(f.armed) == 0 {
		return
	}
	ahead := l.server.ahead
	if by, strikes := f.strike(scenario.ClockForward, target{}); strikes {
		ahead += by
	}
	if by, strikes := f.strike(scenario.ClockBack, target{}); strikes {
		ahead -= by
	}
	if by, strikes := f.strike(scenario.ClockSkew, target{}); strikes {
		ahead = by
		if l.world.chance.stream("operation/"+string(scenario.ClockSkew)).IntN(2) == 1 {
			ahead = -by
		}
	}
	if ahead != l.server.ahead {
		l.world.Servers.SetClock(l.server.number, ahead)
	}
}

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
	a.reader.view, a.reader.reads = nil, 0
	wakeAt := a.drainer.Step(a.clock())
	a.drainerAlarm.set(wakeAt, a.server.ahead)
	w.hash.add(uint64(wakeAt.Sub(Epoch)))
	w.observer.Stepped(DrainerStep{
		Server: a.server.number, Term: a.term, Woken: woken, At: a.clock(), WakeAt: wakeAt,
		View: a.reader.view, Reads: a.reader.reads, Held: a.reader.held(),
	})
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
	for e := range w.Truth().WorkView().PendingEvals() {
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
