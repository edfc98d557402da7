package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/inbox"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
)

// Scheduler answers the evaluations in the state with plans, for as long as its
// server leads: build one when leadership is gained, drop it when it is lost.
//
// What there is to do is read from the newest view at every step: pending
// evaluations by priority and age, at most one plan of a job at a time, made for
// the job's newest evaluation and answering the older ones; then blocked
// evaluations, once capacity has come since they were last looked at; then
// allocations that have been out of touch for too long, which get an evaluation.
// In its first step with a view so do the jobs that have something on a node that is
// down or gone and that nobody is to look at: whoever should have asked did not.
// All that a Scheduler remembers is what it has in flight, and that a new one
// finds out by a barrier: it plans nothing before.
//
// A plan that was rejected, or refused in part, is made again from a newer view,
// with a wait that doubles. If it is not known what became of one, its job is
// left alone until a barrier has been applied.
//
// [Scheduler.Run] is the goroutine shell; it alone, or a test, calls Step.
type Scheduler struct {
	config Config
	logger hclog.Logger
	// woken has capacity 1 and is sent to without blocking.
	woken chan struct{}
	inbox inbox.Inbox[answered]

	// What follows belongs to Step.

	// confirmed says that a barrier of this scheduler has been applied: the state
	// shows everything that earlier leaders wrote.
	confirmed bool
	// barrier is the barrier in flight, or nil. asked spaces barriers.
	barrier *flight
	asked   attempts
	// floor is the index a view must have to be planned from.
	floor uint64
	// flights are the writes that the state may not show, by job.
	flights map[cluster.JobKey]*flight
	retries retries
	// lookAgain is when each job with allocations out of touch will have lost
	// them.
	lookAgain map[cluster.JobKey]time.Time
	// rebuilt says that lookAgain holds what earlier schedulers knew.
	rebuilt bool
	blocked blockedQueue
}

// New returns a scheduler that has done nothing yet. A config that cannot work
// is refused, with the field named.
func New(c Config) (*Scheduler, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Scheduler{
		config:    c,
		logger:    c.Logger.Named("scheduler"),
		woken:     make(chan struct{}, 1),
		flights:   make(map[cluster.JobKey]*flight),
		retries:   retries{config: c, jobs: make(map[cluster.JobKey]attempts)},
		lookAgain: make(map[cluster.JobKey]time.Time),
	}, nil
}

// Wake asks for a step: the state has changed. It never blocks and is safe for
// concurrent use. A server calls it after every entry it applies.
func (s *Scheduler) Wake() {
	select {
	case s.woken <- struct{}{}:
	default: // a wake-up is there already
	}
}

// clockCheck is how often a scheduler that waits for a time looks at the wall
// clock: timers are monotonic, the times in the state are not.
const clockCheck = 30 * time.Second

// Run steps the scheduler until the context ends. It owns no other goroutine,
// and does not wait for writes in flight.
func (s *Scheduler) Run(ctx context.Context) {
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now().Round(0)
		wait := clockCheck
		if wakeAt := s.Step(now); !wakeAt.IsZero() {
			wait = min(wait, wakeAt.Sub(now))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-s.woken:
		case <-timer.C:
		}
	}
}

// Step does what is to be done now. It returns when it wants to be called at the
// latest although nothing changed; zero is never. It may be called sooner, and
// for nothing. It never blocks.
func (s *Scheduler) Step(now time.Time) (wakeAt time.Time) {
	for _, a := range s.inbox.Take() {
		s.settle(a, now)
	}
	wakeAt = s.confirm(now)
	if !s.confirmed {
		return wakeAt
	}
	view := s.config.Snapshot()
	if view.Index() < s.floor {
		return earliest(wakeAt, now.Add(s.config.RetryBase))
	}
	t := &turn{Scheduler: s, world: newWorld(view), now: now, wakeAt: wakeAt}
	t.land()
	t.planPending()
	t.planBlocked()
	t.evaluateLost()
	return t.wakeAt
}

// reply is the Reply of a write.
func (s *Scheduler) reply(f *flight) Reply {
	return func(a Answer) {
		s.inbox.Post(answered{flight: f, answer: a})
		s.Wake()
	}
}

// settle takes in one answer.
func (s *Scheduler) settle(a answered, now time.Time) {
	if a.flight == s.barrier {
		s.settleBarrier(a.answer, now)
		return
	}
	f := a.flight
	f.answered, f.answer = true, a.answer
	switch {
	case a.answer.Outcome == raftwrite.Applied && len(a.answer.Response) == 0:
		s.retries.succeeded(f.job)
	case a.answer.Outcome == raftwrite.Applied:
		s.logger.Debug("plan refused in part", "job", f.job, "refused", len(a.answer.Response), "why", a.answer.Response[0].Why)
		s.retries.failed(f.job, true, now)
	default:
		s.logger.Warn("raft write failed", "job", f.job, "outcome", a.answer.Outcome, "error", a.answer.Err)
		s.retries.failed(f.job, false, now)
	}
	if a.answer.Outcome == raftwrite.Rejected {
		delete(s.flights, f.job)
	}
	s.blocked.dirty = s.blocked.dirty || f.mayBlock()
}

// mayBlock reports whether the state may hold a blocked evaluation on account of
// the write that was made from an older view than the newest.
func (f *flight) mayBlock() bool {
	return f.answer.Outcome != raftwrite.Applied || len(f.answer.Response) > 0 ||
		(f.plan != nil && (f.plan.Blocked != nil || f.plan.Eval.Status == cluster.EvalBlocked))
}

// confirm sees to the barrier: one before the first plan, and one whenever it is
// not known what became of a write. It says when to be called again.
func (s *Scheduler) confirm(now time.Time) (wakeAt time.Time) {
	if s.barrier != nil || (s.confirmed && !s.hasUnknown()) {
		return time.Time{}
	}
	if now.Before(s.asked.until) {
		return s.asked.until
	}
	barrier := &flight{}
	if !s.config.Applier.Barrier(s.reply(barrier)) {
		return now.Add(s.config.RetryBase)
	}
	s.barrier = barrier
	for _, job := range sortedJobs(s.flights) {
		f := s.flights[job]
		f.covered = f.isUnknown()
	}
	return time.Time{}
}

func (f *flight) isUnknown() bool { return f.answered && f.answer.Outcome == raftwrite.Unknown }

func (s *Scheduler) hasUnknown() bool {
	return slices.ContainsFunc(sortedJobs(s.flights), func(job cluster.JobKey) bool { return s.flights[job].isUnknown() })
}

func (s *Scheduler) settleBarrier(a Answer, now time.Time) {
	s.barrier = nil
	if a.Outcome != raftwrite.Applied {
		s.asked.count++
		s.asked.until = now.Add(s.config.after(s.asked.count))
		s.logger.Warn("barrier failed", "outcome", a.Outcome, "error", a.Err, "attempt", s.asked.count)
		return
	}
	s.confirmed = true
	s.asked = attempts{}
	s.floor = max(s.floor, a.Index)
	maps.DeleteFunc(s.flights, func(_ cluster.JobKey, f *flight) bool { return f.covered })
	s.blocked.dirty = true
}
