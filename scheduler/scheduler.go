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

// Scheduler answers evaluations with plans. Create one when the server gains leadership, and
// drop it when the server loses leadership.
//
// Each step reads the newest view and does the following, in this order:
//   - It plans jobs with pending evaluations, by priority and age. A job has at most one plan
//     in flight. The plan is for the job's newest evaluation and answers the older ones.
//   - It tries blocked evaluations again if capacity was added since the last attempt.
//   - It creates evaluations for jobs whose disconnected allocations have become lost, and for jobs of
//     which the delayed replacement of an allocation is due. The
//     first step also creates one for each job with allocations on a node that is down or
//     gone and without a pending evaluation.
//
// A Scheduler keeps no state except its writes in flight. A new Scheduler waits for a barrier
// before its first plan, because writes of an earlier one may still be in flight.
//
// After a rejection or a partial refusal the Scheduler plans again from a newer view, with a
// wait that doubles. After an unknown outcome it does not plan the job before a barrier has
// been applied.
//
// [Scheduler.Run] is the goroutine shell; it alone, or a test, calls Step.
type Scheduler struct {
	config Config
	logger hclog.Logger
	// woken has capacity 1 and is sent to without blocking.
	woken chan struct{}
	inbox inbox.Inbox[answered]

	// Step owns the following fields.

	// confirmed means that a barrier of this scheduler has been applied: the state shows
	// all writes of earlier leaders.
	confirmed bool
	// barrier is the barrier in flight, or nil. failures counts how often it failed.
	barrier  *flight
	failures attempts
	// floor is the minimum index of a view to plan from.
	floor uint64
	// flights are the writes that the state may not show, by job.
	flights map[cluster.JobKey]*flight
	retries retries
	// nextEval is the next evaluation of each job that needs one although nothing changes.
	nextEval map[cluster.JobKey]nextEval
	// rebuilt means that nextEval was computed from the state.
	rebuilt bool
	blocked blockedQueue
	arrays  arrays
}

// New returns a scheduler. The error names the invalid field of the config.
func New(c Config) (*Scheduler, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Scheduler{
		config:   c,
		logger:   c.Logger.Named("scheduler"),
		woken:    make(chan struct{}, 1),
		flights:  make(map[cluster.JobKey]*flight),
		retries:  retries{config: c, jobs: make(map[cluster.JobKey]attempts)},
		nextEval: make(map[cluster.JobKey]nextEval),
	}, nil
}

// Wake requests a step, because the state has changed. It never blocks and is safe for
// concurrent use. A server calls it after every applied entry.
func (s *Scheduler) Wake() {
	select {
	case s.woken <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// clockCheck is how often a waiting scheduler reads the wall clock: timers are monotonic,
// but the times in the state are not.
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

// Step does all work that is possible now. It returns the time of the next call if the
// state does not change before; zero is never. Earlier calls are allowed. Step never blocks.
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
	t := &turn{Scheduler: s, world: newWorld(view, &s.arrays), now: now, wakeAt: wakeAt}
	t.land()
	t.planPending()
	t.planBlocked()
	t.evaluateDue()
	return t.wakeAt
}

// reply is the Reply of a write.
func (s *Scheduler) reply(f *flight) Reply {
	return func(a Answer) {
		s.inbox.Post(answered{flight: f, answer: a})
		s.Wake()
	}
}

// settle applies one answer.
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
	s.blocked.roomReturned = f.keptRoom() && (a.answer.Outcome == raftwrite.Rejected || len(a.answer.Response) > 0) || s.blocked.roomReturned
}

// mayBlock reports whether the write may have created a blocked evaluation from a view that
// was not the newest.
func (f *flight) mayBlock() bool {
	return f.answer.Outcome != raftwrite.Applied || len(f.answer.Response) > 0 ||
		(f.plan != nil && (f.plan.Blocked != nil || f.plan.Eval.Status == cluster.EvalBlocked))
}

// keptRoom reports whether room was kept for the write while it was in flight.
func (f *flight) keptRoom() bool { return f.plan != nil && len(f.plan.Places) > 0 }

// confirm starts a barrier before the first plan, and after a write with an unknown outcome.
// It returns the time of the next call, or zero.
func (s *Scheduler) confirm(now time.Time) (wakeAt time.Time) {
	if s.barrier != nil || (s.confirmed && !s.hasUnknown()) {
		return time.Time{}
	}
	if now.Before(s.failures.until) {
		s.failures.until = noLater(s.failures.until, now.Add(s.config.after(s.failures.count)))
		return s.failures.until
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
		s.failures.count++
		s.failures.until = now.Add(s.config.after(s.failures.count))
		s.logger.Warn("barrier failed", "outcome", a.Outcome, "error", a.Err, "attempt", s.failures.count)
		return
	}
	s.confirmed = true
	s.failures = attempts{}
	s.floor = max(s.floor, a.Index)
	maps.DeleteFunc(s.flights, func(_ cluster.JobKey, f *flight) bool {
		s.blocked.roomReturned = f.covered && f.keptRoom() || s.blocked.roomReturned
		return f.covered
	})
	s.blocked.dirty = true
}
