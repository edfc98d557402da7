package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// leadership is what runs on a server while it leads, or believes that it does.
type leadership struct {
	world  *World
	server *server
	// term counts the leaderships of the world, from 1.
	term int

	drainer   *drainer.Term
	scheduler *scheduler.Scheduler
	// sight is how the drainer sees the server's state.
	sight *sight
	// drains and schedules are how the two are woken.
	drains, schedules wakeUp
	// drainerActor and schedulerActor step them; drainerActor is nil once the term has
	// ended and the drainer knows.
	drainerActor   *drainerActor
	schedulerActor *schedulerActor
	// established is when the drainer is enabled.
	established time.Time
	// caughtUp says that something of this term has been committed.
	caughtUp bool
	// deposed says that the term has ended, whether the drainer knows or not.
	deposed bool
	// limbo is what it proposed since it was deposed, and what it was not told of by
	// then.
	limbo []*proposal
}

// lead begins a term on a server.
func (w *World) lead(s *server) error {
	w.terms++
	l := &leadership{world: w, server: s, term: w.terms, sight: w.sight(s), drains: newWakeUp(), schedules: newWakeUp()}
	l.established = w.now.Add(w.draw("establish", w.options.Establish))
	config := w.options.Drainer
	config.Raft = shims.NewDrainerApplier(proposals{log: &w.log, source: FromDrainer, from: l})
	config.NewEvalID = w.ids.eval
	var err error
	if l.drainer, err = drainer.NewTerm(config, l.sight, l.drains.woken); err != nil {
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
	w.hash.add(uint64(l.term), uint64(s.number))
	for _, f := range w.onElect {
		f(s.number)
	}
	l.tellClock()
	return nil
}

// catchUp is called when something of the leader's is committed: by then it has
// applied everything before.
func (l *leadership) catchUp() {
	l.caughtUp = true
	if l.server.behind != nil {
		l.server.behind = nil
		l.sight.catchUp()
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

// Clock is the time on the leader's clock.
func (w *World) Clock() time.Time { return w.leader.clock() }

// clock is the time on the server's clock.
func (l *leadership) clock() time.Time { return l.world.now.Add(l.server.ahead) }
