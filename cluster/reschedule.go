package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// DelayFunction is how the delays of a [ReschedulePolicy] grow from one replacement to the next.
type DelayFunction string

// The values of [DelayFunction].
const (
	// DelayConstant: each delay is Delay.
	DelayConstant DelayFunction = "constant"
	// DelayExponential: each delay is twice the one before.
	DelayExponential DelayFunction = "exponential"
	// DelayFibonacci: each delay is the sum of the two before. The first two are Delay.
	DelayFibonacci DelayFunction = "fibonacci"
)

// ReschedulePolicy is how often and after which delay the scheduler replaces allocations that ended by
// themselves. What a drain, a node that is lost or a new version of the job replaces is no failure: it is
// replaced at once and does not count.
type ReschedulePolicy struct {
	// Attempts is how many replacements there may be within Interval before a failure. Without Unlimited,
	// zero permits none.
	Attempts int
	Interval time.Duration
	// Delay is the time from the end of an allocation to its first replacement.
	Delay         time.Duration
	DelayFunction DelayFunction
	// MaxDelay bounds the delays that grow. An allocation that ran for longer than MaxDelay is replaced
	// after Delay, and the delays grow from there.
	MaxDelay time.Duration
	// Unlimited means that Attempts and Interval have no effect.
	Unlimited bool
}

// Bounds of a [ReschedulePolicy].
const (
	MinRescheduleDelay    = 5 * time.Second
	MinRescheduleInterval = 15 * time.Second
	// MaxRescheduleAttempts bounds the ended allocations that the servers keep for one that runs.
	MaxRescheduleAttempts = 1000
)

// DefaultReschedulePolicy returns the policy of groups without one in a registration, or nil if the type of
// job has none.
func DefaultReschedulePolicy(t JobType) *ReschedulePolicy {
	switch t {
	case JobService:
		return &ReschedulePolicy{Delay: 30 * time.Second, DelayFunction: DelayExponential, MaxDelay: time.Hour, Unlimited: true}
	case JobBatch:
		return &ReschedulePolicy{Attempts: 1, Interval: 24 * time.Hour, Delay: 5 * time.Second, DelayFunction: DelayConstant}
	}
	return nil
}

func (p *ReschedulePolicy) copy() *ReschedulePolicy {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Validate returns every reason why the policy is wrong for a type of job, joined, or nil.
func (p *ReschedulePolicy) Validate(t JobType) error {
	switch {
	case p == nil:
		return nil
	case t.EveryNode():
		return fmt.Errorf("Job type %q does not allow reschedule block", t)
	case p.Attempts < 0 || p.Interval < 0 || p.Delay < 0 || p.MaxDelay < 0:
		return errors.New("Reschedule Policy: Attempts, Interval, Delay and MaxDelay must be >= 0")
	case !p.Unlimited && p.Attempts == 0:
		return nil // it replaces nothing
	}
	var errs []error
	switch p.DelayFunction {
	case DelayConstant, DelayExponential, DelayFibonacci:
	default:
		errs = append(errs, fmt.Errorf("Reschedule Policy: Invalid delay function %q, must be one of %q, %q, %q",
			p.DelayFunction, DelayConstant, DelayExponential, DelayFibonacci))
	}
	if p.Delay < MinRescheduleDelay {
		errs = append(errs, fmt.Errorf("Reschedule Policy: Delay cannot be less than %s (got %s)", MinRescheduleDelay, p.Delay))
	}
	if p.DelayFunction != DelayConstant && p.MaxDelay < max(p.Delay, MinRescheduleDelay) {
		errs = append(errs, fmt.Errorf("Reschedule Policy: Max Delay cannot be less than Delay %s (got %s)", p.Delay, p.MaxDelay))
	}
	if p.Unlimited {
		return errors.Join(errs...)
	}
	if p.Attempts > MaxRescheduleAttempts {
		errs = append(errs, fmt.Errorf("Reschedule Policy: Attempts must be <= %d but found %d; set unlimited instead", MaxRescheduleAttempts, p.Attempts))
	}
	if p.Interval < MinRescheduleInterval {
		errs = append(errs, fmt.Errorf("Reschedule Policy: Interval cannot be less than %s (got %s)", MinRescheduleInterval, p.Interval))
	}
	if len(errs) == 0 {
		if n := p.fitting(); n < p.Attempts {
			errs = append(errs, fmt.Errorf("Reschedule Policy: only %d attempts with initial delay %s and delay function %q fit into an interval of %s, and there are %d",
				n, p.Delay, p.DelayFunction, p.Interval, p.Attempts))
		}
	}
	return errors.Join(errs...)
}

// fitting returns how many of the attempts fit into the interval if each replacement ends at once.
func (p *ReschedulePolicy) fitting() int {
	left := p.Interval
	for n := range p.Attempts {
		if left -= p.delay(n); left < 0 {
			return n
		}
	}
	return p.Attempts
}

// delay returns the delay after n replacements whose delays have grown.
func (p *ReschedulePolicy) delay(n int) time.Duration {
	last, d := time.Duration(0), p.Delay
	for range n {
		switch next := d; p.DelayFunction {
		case DelayExponential:
			d += d
		case DelayFibonacci:
			if last == 0 {
				last = d
				continue
			}
			d, last = d+last, next
		default:
			return d
		}
		if d >= p.MaxDelay || d < 0 { // negative: the sum has overflowed
			return max(p.Delay, p.MaxDelay)
		}
	}
	return d
}

// growth returns after how many replacements the delays grow no further.
func (p *ReschedulePolicy) growth() (n int) {
	if p.DelayFunction == DelayConstant || p.Delay <= 0 {
		return 0
	}
	for p.delay(n) < p.MaxDelay {
		n++
	}
	return n
}

// Reach returns how many successive predecessors of an allocation [Job.Rescheduling] reads.
func (p *ReschedulePolicy) Reach() int {
	if p.Unlimited {
		return p.growth()
	}
	return max(p.Attempts, p.growth())
}

// Limit is how many replacements the policy permits, in words.
func (p *ReschedulePolicy) Limit() string {
	switch {
	case p.Unlimited:
		return "any number of replacements"
	case p.Attempts == 0:
		return "no replacements"
	}
	return fmt.Sprintf("%d within %s", p.Attempts, p.Interval)
}

// Rescheduling is what the policy of its group provides for an allocation that ended by itself.
type Rescheduling struct {
	Policy *ReschedulePolicy
	// Attempts counts the replacements before the allocation that the policy limits: within Interval if it
	// has limited attempts, and otherwise those by which the delay has grown.
	Attempts int
	// Spent means that the allocation is not replaced.
	Spent bool
	// Delay is the time from its end to its replacement, and DueAt the time of the replacement. Both are
	// zero if it is spent, or if the policy does not delay it: a drain or an operator requires the
	// replacement, or the work of the group has changed.
	Delay time.Duration
	DueAt time.Time
}

// Rescheduling returns what the policy of its group provides for an allocation that ended by itself and has no
// replacement. It returns nil for others, for work that is done, and if the group has no policy. The job is the
// current one, or nil. alloc returns an allocation or nil.
func (j *Job) Rescheduling(a *Allocation, alloc func(AllocID) *Allocation) *Rescheduling {
	p := j.policyFor(a)
	switch {
	case p == nil || j.Type.ToCompletion() && !j.IsWorkOf(a):
		return nil
	case !j.IsWorkOf(a):
		return &Rescheduling{Policy: p}
	}
	return p.rescheduling(a, func(id AllocID) *Allocation {
		if previous := alloc(id); previous != nil && j.IsWorkOf(previous) {
			return previous
		}
		return nil
	})
}

// ReschedulingOfWork is [Job.Rescheduling] for an allocation with the work of the job, after others with this
// work. It compares no tasks: a plan follows each registration, and stops what is not replaced for that.
func (j *Job) ReschedulingOfWork(a *Allocation, alloc func(AllocID) *Allocation) *Rescheduling {
	p := j.policyFor(a)
	if p == nil {
		return nil
	}
	return p.rescheduling(a, alloc)
}

// policyFor returns the policy by which an allocation that ended by itself is replaced, or nil.
func (j *Job) policyFor(a *Allocation) *ReschedulePolicy {
	g := j.Group(a.TaskGroup)
	switch {
	case j.Stopped() || g == nil || j.Type.EveryNode() || a.Job != nil && a.Job.Type != j.Type:
		return nil
	case !a.ClientTerminal() || a.ServerTerminal() || a.NextAllocation != "":
		return nil
	case j.Type.ToCompletion() && a.ClientStatus == ClientComplete:
		return nil
	}
	return g.Reschedule
}

func (p *ReschedulePolicy) rescheduling(a *Allocation, alloc func(AllocID) *Allocation) *Rescheduling {
	r := &Rescheduling{Policy: p}
	if a.DesiredTransition.ForceReschedule || a.Marked() {
		return r
	}
	grown, grows, counts := 0, true, true
	last := a
	for range p.Reach() {
		previous := alloc(last.PreviousAllocation)
		if !wasRescheduled(previous) {
			break
		}
		if grows = grows && last.EndedAt.Sub(last.CreateTime) <= p.MaxDelay; grows {
			grown++
		}
		if counts = counts && a.EndedAt.Sub(last.CreateTime) < p.Interval; counts {
			r.Attempts++
		}
		last = previous
	}
	if p.Unlimited {
		r.Attempts = grown
	}
	if r.Spent = !p.Unlimited && r.Attempts >= p.Attempts; !r.Spent {
		r.Delay = p.delay(grown)
		r.DueAt = a.EndedAt.Add(r.Delay)
	}
	return r
}

// Waits reports whether the replacement is due later than now. An end in the future means that the clock was
// set back: the wait is over, unless the clocks of two leaders may differ by so much.
func (r *Rescheduling) Waits(now time.Time) bool {
	return r != nil && now.Before(r.DueAt) && now.After(r.DueAt.Add(-r.LongestWait()))
}

// LongestWait is how long a replacement may wait at most: the clocks of two leaders may differ by its delay.
func (r *Rescheduling) LongestWait() time.Duration { return 2 * r.Delay }

// wasRescheduled reports whether an allocation, which may be nil, was replaced because it ended by itself.
func wasRescheduled(a *Allocation) bool {
	return a != nil && a.ServerTerminal() && !a.EndedAt.IsZero() && !a.Marked()
}

// IsWorkOf reports whether the job has the same tasks and disk as the version of the allocation. Services are no
// work: another entry in the catalogue runs no ended task again.
func (j *Job) IsWorkOf(a *Allocation) bool {
	if a.Job == nil {
		return true // a damaged record: do not run it again
	}
	was, is := a.Job.Group(a.TaskGroup), j.Group(a.TaskGroup)
	return was != nil && is != nil && (was == is || was.EphemeralDisk == is.EphemeralDisk && slices.EqualFunc(was.Tasks, is.Tasks, func(a, b *Task) bool {
		return a.withoutServices().Equal(b.withoutServices())
	}))
}
