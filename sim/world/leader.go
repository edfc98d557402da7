package world

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// leadership is what runs on a server while it leads.
type leadership struct {
	world   *World
	replica *replica

	drainer   *drainer.Term
	scheduler *scheduler.Scheduler
	// drains and schedules are how the two are woken.
	drains, schedules wakeUp
}

// lead begins a term on a server.
func (w *World) lead(r *replica) error {
	l := &leadership{world: w, replica: r, drains: newWakeUp(), schedules: newWakeUp()}
	config := w.options.Drainer
	config.Raft = shims.NewRaftApplier(proposals{log: &w.log, source: FromDrainer})
	config.NewEvalID = w.ids.eval
	var err error
	if l.drainer, err = drainer.NewTerm(config, w.options.Reader(r.fsm.Store()), l.drains.woken); err != nil {
		return fmt.Errorf("beginning a term of the drainer: %w", err)
	}
	l.scheduler, err = scheduler.New(scheduler.Config{
		Snapshot: func() scheduler.View { return r.state() },
		Applier:  shims.NewSchedulerApplier(proposals{log: &w.log, source: FromScheduler, answered: l.schedules.wake}),
		IDs:      scheduler.IDs{Alloc: w.ids.alloc, Eval: w.ids.eval},
	})
	if err != nil {
		return fmt.Errorf("beginning a term of the scheduler: %w", err)
	}
	l.drains.wake() // a goroutine begins with a step
	l.schedules.wake()
	w.leader = l
	return nil
}

// Elect ends the leader's term and begins one on the next server. What the old
// leader had proposed and not been told of survives in the log, or is lost.
func (w *World) Elect(survive bool) error {
	w.leader.drainer.Close()
	if err := w.log.resign(survive); err != nil {
		return fmt.Errorf("ending a term: %w", err)
	}
	w.elections++
	return w.lead(w.replicas[w.elections%len(w.replicas)])
}

// ahead is how far the leader's clock is ahead of the world's time.
func (w *World) ahead() time.Duration { return w.leader.replica.ahead }

// Clock is the time on the leader's clock.
func (w *World) Clock() time.Time { return w.now.Add(w.ahead()) }

// SetClock sets a server's clock: how far it is ahead of the world's time from
// now on.
func (w *World) SetClock(server int, ahead time.Duration) {
	r := w.replicas[server]
	r.ahead = ahead
	if w.leader.replica == r {
		w.leader.drains.jumped(w.now)
		w.leader.schedules.jumped(w.now)
	}
}

// drainerActor steps the leader's drainer.
type drainerActor struct{ world *World }

func (a drainerActor) ready() bool    { return a.world.leader.drains.ready(a.world.now, a.world.ahead()) }
func (a drainerActor) due() time.Time { return a.world.leader.drains.fires }

func (a drainerActor) step() error {
	l := a.world.leader
	l.drains.begin()
	l.drains.set(l.drainer.Step(a.world.Clock()), a.world.ahead())
	return nil
}

// schedulerActor steps the leader's scheduler.
type schedulerActor struct{ world *World }

func (a schedulerActor) ready() bool {
	return a.world.leader.schedules.ready(a.world.now, a.world.ahead())
}
func (a schedulerActor) due() time.Time { return a.world.leader.schedules.fires }

func (a schedulerActor) step() error {
	l := a.world.leader
	l.schedules.begin()
	l.schedules.set(l.scheduler.Step(a.world.Clock()), a.world.ahead())
	return nil
}
