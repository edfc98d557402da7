package cluster_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func rescheduled(t cluster.JobType, p *cluster.ReschedulePolicy) *cluster.Job {
	return &cluster.Job{ID: "job", Type: t, TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 1, Reschedule: p, Tasks: []*cluster.Task{{Name: "t"}}}}}
}

func TestReschedulePolicy_validate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind   cluster.JobType
		policy *cluster.ReschedulePolicy
		want   string
	}{
		"the default of services": {policy: cluster.DefaultReschedulePolicy(cluster.JobService)},
		"the default of batch":    {policy: cluster.DefaultReschedulePolicy(cluster.JobBatch)},
		"none":                    {policy: &cluster.ReschedulePolicy{}},
		"a system job": {
			kind: cluster.JobSystem, policy: &cluster.ReschedulePolicy{Unlimited: true, Delay: time.Minute, DelayFunction: cluster.DelayConstant},
			want: `Job type "system" does not allow reschedule block`,
		},
		"negative": {
			policy: &cluster.ReschedulePolicy{Attempts: -1},
			want:   "Reschedule Policy: Attempts, Interval, Delay and MaxDelay must be >= 0",
		},
		"an unknown function": {
			policy: &cluster.ReschedulePolicy{Unlimited: true, Delay: time.Minute, MaxDelay: time.Hour, DelayFunction: "linear"},
			want:   `Reschedule Policy: Invalid delay function "linear", must be one of "constant", "exponential", "fibonacci"`,
		},
		"a short delay": {
			policy: &cluster.ReschedulePolicy{Unlimited: true, Delay: time.Second, DelayFunction: cluster.DelayConstant},
			want:   "Reschedule Policy: Delay cannot be less than 5s (got 1s)",
		},
		"a short longest delay": {
			policy: &cluster.ReschedulePolicy{Unlimited: true, Delay: time.Minute, MaxDelay: time.Second, DelayFunction: cluster.DelayFibonacci},
			want:   "Reschedule Policy: Max Delay cannot be less than Delay 1m0s (got 1s)",
		},
		"a short interval": {
			policy: &cluster.ReschedulePolicy{Attempts: 1, Interval: time.Second, Delay: 5 * time.Second, DelayFunction: cluster.DelayConstant},
			want:   "Reschedule Policy: Interval cannot be less than 15s (got 1s)",
		},
		"many attempts": {
			policy: &cluster.ReschedulePolicy{Attempts: 1001, Interval: 24 * time.Hour, Delay: 5 * time.Second, DelayFunction: cluster.DelayConstant},
			want:   "Reschedule Policy: Attempts must be <= 1000 but found 1001; set unlimited instead",
		},
		"more attempts than fit": {
			policy: &cluster.ReschedulePolicy{Attempts: 4, Interval: time.Minute, Delay: 10 * time.Second, MaxDelay: time.Hour, DelayFunction: cluster.DelayExponential},
			want:   `Reschedule Policy: only 2 attempts with initial delay 10s and delay function "exponential" fit into an interval of 1m0s, and there are 4`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.kind == "" {
				test.kind = cluster.JobService
			}
			job := rescheduled(test.kind, test.policy)
			job.Canonicalize()
			err := job.Validate()
			if test.want == "" {
				must.NoError(t, err)
			} else {
				must.ErrorContains(t, err, test.want)
			}
		})
	}
}

// failures are the allocations of one slot, one after the other: each ends by itself after its run, and its
// replacement is placed after its delay.
type failures struct {
	job    *cluster.Job
	allocs map[cluster.AllocID]*cluster.Allocation
	last   *cluster.Allocation
	now    time.Time
}

func (f *failures) fail(run time.Duration) *cluster.Rescheduling {
	next := &cluster.Allocation{
		ID: cluster.AllocID(string(rune('a' + len(f.allocs)))), Job: f.job, TaskGroup: "g", CreateTime: f.now,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientFailed,
	}
	if f.last != nil {
		next.PreviousAllocation, f.last.NextAllocation, f.last.DesiredStatus = f.last.ID, next.ID, cluster.DesiredStop
	}
	f.now = f.now.Add(run)
	next.EndedAt = f.now
	f.allocs[next.ID], f.last = next, next
	r := f.rescheduling()
	f.now = f.now.Add(r.Delay)
	return r
}

func (f *failures) rescheduling() *cluster.Rescheduling {
	return f.job.Rescheduling(f.last, func(id cluster.AllocID) *cluster.Allocation { return f.allocs[id] })
}

func failuresOf(p *cluster.ReschedulePolicy) *failures {
	return &failures{
		job: rescheduled(cluster.JobService, p), allocs: map[cluster.AllocID]*cluster.Allocation{},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func TestRescheduling_delays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		function cluster.DelayFunction
		reach    int
		want     []time.Duration // in seconds
	}{
		"constant":    {cluster.DelayConstant, 0, []time.Duration{10, 10, 10}},
		"exponential": {cluster.DelayExponential, 4, []time.Duration{10, 20, 40, 80, 100, 100}},
		"fibonacci":   {cluster.DelayFibonacci, 6, []time.Duration{10, 10, 20, 30, 50, 80, 100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &cluster.ReschedulePolicy{Unlimited: true, Delay: 10 * time.Second, MaxDelay: 100 * time.Second, DelayFunction: test.function}
			must.Eq(t, test.reach, p.Reach())
			f := failuresOf(p)
			for i, want := range test.want {
				r := f.fail(time.Second)
				must.Eq(t, want*time.Second, r.Delay, must.Sprint(i))
				must.Eq(t, f.last.EndedAt.Add(r.Delay), r.DueAt)
				must.True(t, r.Waits(r.DueAt.Add(-1)))
				must.False(t, r.Waits(r.DueAt))
				must.False(t, r.Waits(f.last.EndedAt.Add(-r.Delay)), must.Sprint("the clock was set back"))
			}
			must.Eq(t, 10*time.Second, f.fail(101*time.Second).Delay, must.Sprint("it ran for longer than the longest delay"))
		})
	}
	longest := &cluster.ReschedulePolicy{Unlimited: true, Delay: 1 << 61, MaxDelay: 1<<63 - 1, DelayFunction: cluster.DelayExponential}
	must.Eq(t, 2, longest.Reach(), must.Sprint("a delay that overflows"))
}

// Only the replacements within the interval before the end count.
func TestRescheduling_attempts(t *testing.T) {
	t.Parallel()
	p := &cluster.ReschedulePolicy{Attempts: 2, Interval: time.Minute, Delay: 5 * time.Second, DelayFunction: cluster.DelayConstant}
	f := failuresOf(p)
	must.Eq(t, 2, p.Reach())
	must.Eq(t, 0, f.fail(time.Hour).Attempts)
	must.Eq(t, 1, f.fail(time.Second).Attempts)
	r := f.fail(time.Second)
	must.Eq(t, 2, r.Attempts)
	must.True(t, r.Spent)
	must.True(t, r.DueAt.IsZero())

	force := *f.last
	force.DesiredTransition.ForceReschedule = true
	moved := *f.last
	moved.DesiredTransition.Migrate = true
	other := *f.last
	other.Job = rescheduled(cluster.JobService, p)
	other.Job.TaskGroups[0].Tasks[0].Name = "other"
	for _, a := range []*cluster.Allocation{&force, &moved, &other} {
		must.Eq(t, &cluster.Rescheduling{Policy: p}, f.job.Rescheduling(a, func(id cluster.AllocID) *cluster.Allocation { return f.allocs[id] }))
	}

	f.last.EndedAt = f.last.EndedAt.Add(time.Minute) // it ran on for a minute
	r = f.rescheduling()
	must.Eq(t, 0, r.Attempts)
	must.False(t, r.Spent)

	none := failuresOf(&cluster.ReschedulePolicy{})
	must.True(t, none.fail(time.Hour).Spent)
	must.Nil(t, failuresOf(nil).job.Rescheduling(none.last, nil))
	must.False(t, (*cluster.Rescheduling)(nil).Waits(time.Time{}))
}
