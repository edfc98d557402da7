package live

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// leadership is what runs on a server while it leads, or believes that it does: its
// drainer, enabled, and a scheduler. Its fields are the log's goroutine's, but for what
// says otherwise.
type leadership struct {
	server *peer
	// limbo is what it proposed after its end; guarded by the contract's mu.
	limbo []*proposal
	// scheduler is never nil; it is safe to be woken by anybody.
	scheduler *scheduler.Scheduler
	// stop ends the scheduler's goroutine and waits for it.
	stop func()
	// waking says that a wake-up of the scheduler is under way.
	waking atomic.Bool
	over   bool
}

// lead begins a term on a server.
func (l *contract) lead(s *peer) error {
	s.view.clear()
	l.result.Terms++
	led := &leadership{server: s}
	if err := led.schedule(); err != nil {
		return err
	}
	s.view.subscribe(led.scheduler.Wake)
	l.mu.Lock()
	l.leader, s.leads = led, led
	l.mu.Unlock()
	establish := l.chance.draw("establish", l.scenario.Cluster.Establish)
	if establish <= 0 {
		return led.enable()
	}
	time.AfterFunc(establish, func() { l.do(led.enable) })
	return nil
}

// schedule starts the scheduler.
func (led *leadership) schedule() error {
	s := led.server
	var err error
	led.scheduler, err = scheduler.New(scheduler.Config{
		Snapshot: func() scheduler.View { return s.state() },
		Applier:  shims.NewSchedulerApplier(proposals{s, world.FromScheduler}),
		IDs:      scheduler.IDs{Alloc: s.ids.alloc, Eval: s.ids.eval},
	})
	if err != nil {
		return fmt.Errorf("beginning a term of the scheduler: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		led.scheduler.Run(ctx)
	}()
	led.stop = func() {
		cancel()
		<-exited
	}
	return nil
}

// enable enables the drainer, unless the leadership has ended. A drainer that is
// enabled begins anew.
func (led *leadership) enable() error {
	s := led.server
	if led.over {
		return nil
	}
	if err := s.drainer.SetEnabled(true, reader{s.store().Reader(), s}); err != nil {
		return fmt.Errorf("beginning a term of the drainer: %w", err)
	}
	return nil
}

// depose ends the leader's term and begins one on another server.
func (l *contract) depose(e world.Election) error {
	if l.leader == nil {
		return nil // a term is ending
	}
	old, next := l.leader, l.successor(e.Next)
	if delay, strikes := l.faults.strike(scenario.LeaderTwo, target{}); strikes {
		e.Believes = max(e.Believes, delay)
	}
	if next == old.server {
		e.Believes = 0 // a server knows what it is itself
	}
	if err := l.resign(old, !e.Lost); err != nil {
		return fmt.Errorf("ending a term: %w", err)
	}
	for _, led := range slices.Clone(l.deposed) {
		if led.server == next {
			led.stepDown()
		}
	}
	if e.Believes == 0 {
		old.stepDown()
	} else {
		l.deposed = append(l.deposed, old)
		time.AfterFunc(e.Believes, func() { l.do(func() error { old.stepDown(); return nil }) })
	}
	if err := l.lead(next); err != nil {
		return err
	}
	return l.flap()
}

// elect ends the leader's term and begins one on the next server.
func (l *contract) elect(survive bool) error {
	return l.depose(world.Election{Next: -1, Lost: !survive})
}

// successor is who leads next: the server of that number, the one after the leader if it
// is below zero, or the next that is not cut off.
func (l *contract) successor(number int) *peer {
	if number < 0 {
		number = l.leader.server.number + 1
	}
	for l.members[number%len(l.members)].cut {
		number++ // they are a minority
	}
	return l.members[number%len(l.members)]
}

// resign settles what a leader that is gone had proposed: it survives in the log and
// is applied before anything of the next leader's, or is lost. What had not left its
// process is lost anyway. Clients and operators ask the next leader.
func (l *contract) resign(old *leadership, survive bool) error {
	now := time.Now()
	l.mu.Lock()
	l.leader = nil
	var own []*proposal
	var kept []*proposal
	for _, p := range l.queue {
		if p.from == nil {
			kept = append(kept, p)
		} else {
			own = append(own, p)
		}
	}
	l.queue = kept
	old.limbo = append(own, old.limbo...)
	l.mu.Unlock()
	for _, p := range own {
		left := !p.leaves.After(now)
		if !survive || !left || p.message == nil || p.fate == world.Reject || p.fate == world.UnknownLost {
			continue
		}
		if err := l.race(p.message); err != nil {
			return err
		}
		l.entries = append(l.entries, entry{data: p.data})
	}
	return nil
}

// stepDown ends what a leader that was deposed believed: of nothing that it proposed
// is it told the outcome.
func (led *leadership) stepDown() {
	if led.over {
		return // it knows
	}
	led.over = true
	l := led.server.contract
	l.deposed = slices.DeleteFunc(l.deposed, func(o *leadership) bool { return o == led })
	l.mu.Lock()
	led.server.leads = nil
	limbo := led.limbo
	led.limbo = nil
	l.mu.Unlock()
	_ = led.server.drainer.SetEnabled(false, nil) // what is disabled cannot fail
	led.stop()
	for _, p := range limbo {
		if p.reply != nil {
			p.reply(unknown())
		}
	}
}

// wake has the scheduler look again, in its own time.
func (led *leadership) wake() {
	delay := led.attention()
	if delay <= 0 {
		led.scheduler.Wake()
		return
	}
	if led.waking.Swap(true) {
		return // it will see this too
	}
	time.AfterFunc(delay, func() {
		led.waking.Store(false)
		led.scheduler.Wake()
	})
}

// attention is how long the scheduler takes to turn to what has come.
func (led *leadership) attention() time.Duration {
	p := led.server.player
	delay := p.chance.draw("schedule", p.scenario.Cluster.Schedule)
	if longer, strikes := p.faults.strike(scenario.SchedSlow, target{}); strikes {
		delay += longer
	}
	return delay
}

// tell delivers an answer to the drainer or the scheduler when its process runs and it
// turns to it.
func (led *leadership) tell(to world.Source, deliver func()) {
	now := time.Now()
	at := led.server.awake(now)
	if to == world.FromScheduler {
		at = at.Add(led.attention())
	}
	if at.After(now) {
		time.AfterFunc(at.Sub(now), deliver)
		return
	}
	deliver()
}

// proposals are what one source on a server proposes while it leads.
type proposals struct {
	server *peer
	source world.Source
}

var _ shims.Proposals = proposals{}

// Propose proposes a message.
func (p proposals) Propose(m shims.Message, reply func(shims.Answer)) (queued bool) {
	return p.server.take(p.server, &proposal{source: p.source, message: m, reply: reply})
}

// Barrier proposes a barrier.
func (p proposals) Barrier(reply func(shims.Answer)) (queued bool) { return p.Propose(nil, reply) }
