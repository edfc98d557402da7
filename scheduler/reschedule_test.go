package scheduler_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// policy gives the groups of a job a reschedule policy.
func policy(p cluster.ReschedulePolicy) func(*cluster.Job) {
	return func(j *cluster.Job) {
		for _, g := range j.TaskGroups {
			g.Reschedule = &p
		}
	}
}

var (
	growing  = cluster.ReschedulePolicy{Unlimited: true, Delay: 30 * time.Second, DelayFunction: cluster.DelayExponential, MaxDelay: time.Hour}
	constant = cluster.ReschedulePolicy{Unlimited: true, Delay: 10 * time.Second, DelayFunction: cluster.DelayConstant}
	thrice   = cluster.ReschedulePolicy{Attempts: 3, Interval: time.Hour, Delay: 10 * time.Second, DelayFunction: cluster.DelayConstant}
	none     = cluster.ReschedulePolicy{}
)

// failing is a job of one allocation on one of two nodes, and the leader that schedules it.
type failing struct {
	*log
	t      *testing.T
	leader *scheduler.Scheduler
	job    cluster.JobKey
}

func newFailing(t *testing.T, p cluster.ReschedulePolicy, edit ...func(*cluster.Job)) *failing {
	c := newCell(t)
	c.node("n1")
	c.node("n2")
	leader, log := c.leader()
	f := &failing{log: log, t: t, leader: leader, job: c.job("web", cluster.JobService, 1, append(edit, policy(p))...)}
	f.start()
	return f
}

// start places what is missing, and the clients start it.
func (f *failing) start() {
	f.lead(f.leader)
	f.progress()
	f.lead(f.leader)
}

// running returns the allocation that should run, or nil.
func (f *failing) running() *cluster.Allocation {
	all := f.wanted(f.job)
	must.LessEq(f.t, 1, len(all))
	return first(func(yield func(*cluster.Allocation) bool) {
		for _, a := range all {
			yield(a)
		}
	})
}

// fail has the running allocation fail, and returns it.
func (f *failing) fail() *cluster.Allocation {
	a := f.running()
	must.NotNil(f.t, a)
	f.report(f.statusReport(a, cluster.ClientFailed))
	f.start()
	return a
}

// waits checks that the replacement of a is placed after the wait, not earlier.
func (f *failing) waits(a *cluster.Allocation, wait time.Duration) {
	due := f.now.Add(wait)
	must.Nil(f.t, f.running(), must.Sprint("it is replaced before it is due"))
	must.Eq(f.t, due, f.leader.Step(f.now), must.Sprint("the scheduler wakes when it is due"))
	f.now = due.Add(-1)
	f.start()
	must.Nil(f.t, f.running(), must.Sprint("it is replaced before it is due"))
	f.now = due
	f.start()
	must.NotNil(f.t, f.running(), must.Sprint("it is not replaced"))
	must.Eq(f.t, a.ID, f.running().PreviousAllocation)
	must.Eq(f.t, cluster.TriggerAllocFailure, f.view().Eval(f.running().EvalID).TriggeredBy)
}

// staysDown checks that nothing replaces a, however long.
func (f *failing) staysDown(a *cluster.Allocation) {
	must.True(f.t, f.leader.Step(f.now).IsZero(), must.Sprint("the scheduler is quiet"))
	f.now = f.now.Add(365 * 24 * time.Hour)
	f.start()
	must.Nil(f.t, f.running())
	must.Eq(f.t, []cluster.AllocID{a.ID}, scheduler.GivenUp(f.view().WorkView(), f.job))
	must.Eq(f.t, "it holds a slot of its group", scheduler.Needs(f.view().WorkView(), f.alloc(a.ID)))
}

func TestReschedule_delaysGrow(t *testing.T) {
	t.Parallel()
	f := newFailing(t, growing)
	for n := range 9 {
		f.waits(f.fail(), min(30*time.Second<<n, time.Hour))
	}
	f.now = f.now.Add(time.Hour + 1)
	f.waits(f.fail(), 30*time.Second)

	f = newFailing(t, constant)
	for range 2 * cluster.MaxReschedules {
		f.waits(f.fail(), 10*time.Second)
	}
}

func TestReschedule_attemptsWithinTheInterval(t *testing.T) {
	t.Parallel()
	f := newFailing(t, thrice)
	for range 3 {
		f.waits(f.fail(), 10*time.Second)
		f.now = f.now.Add(time.Minute)
	}
	f.staysDown(f.fail())

	f = newFailing(t, thrice)
	for range 9 {
		f.waits(f.fail(), 10*time.Second)
		f.now = f.now.Add(30 * time.Minute)
	}
}

// No attempts and not unlimited: a failure is for good. Drains and lost nodes are no failures.
func TestReschedule_noAttempts(t *testing.T) {
	t.Parallel()
	f := newFailing(t, none)
	f.staysDown(f.fail())

	f = newFailing(t, none)
	for range 3 {
		a := f.running()
		f.drain(a.NodeID)
		f.mark(cluster.MarkPaced, a)
		f.start()
		must.NotNil(t, f.running(), must.Sprint("a drain always moves"))
		must.NotEq(t, a.ID, f.running().ID)
		f.cancel(a.NodeID)
		f.start()
	}
	lost := f.running()
	f.status(lost.NodeID, cluster.NodeDown)
	f.start()
	must.NotNil(t, f.running(), must.Sprint("a lost node always moves"))
	f.staysDown(f.fail())
}

// A batch job fails once, runs again after its delay, and fails for good. Completed work is never run again.
func TestReschedule_batch(t *testing.T) {
	t.Parallel()
	f := newFailing(t, *cluster.DefaultReschedulePolicy(cluster.JobBatch), func(j *cluster.Job) { j.Type = cluster.JobBatch })
	f.waits(f.fail(), 5*time.Second)
	f.staysDown(f.fail())
}

// A drain that has marked an allocation replaces it at once, although it ends by itself before its stop.
func TestReschedule_markedBeforeItEnds(t *testing.T) {
	t.Parallel()
	f := newFailing(t, none)
	a := f.running()
	f.drain(a.NodeID)
	f.mark(cluster.MarkPaced, a)
	f.report(f.statusReport(a, cluster.ClientFailed))
	f.start()
	must.NotNil(t, f.running())
	must.Eq(t, a.ID, f.running().PreviousAllocation)
	f.staysDown(f.fail())
}

// What the wait for a replacement outlives, or what ends it.
func TestReschedule_whileItWaits(t *testing.T) {
	t.Parallel()
	t.Run("a new leader", func(t *testing.T) {
		f := newFailing(t, growing)
		a := f.fail()
		f.now = f.now.Add(10 * time.Second)
		f.leader = f.successor()
		f.start()
		f.waits(a, 20*time.Second)
	})
	t.Run("a new leader after it was due", func(t *testing.T) {
		f := newFailing(t, growing)
		f.fail()
		f.now = f.now.Add(time.Hour)
		f.leader = f.successor()
		f.start()
		must.NotNil(t, f.running())
	})
	t.Run("a restored snapshot", func(t *testing.T) {
		f := newFailing(t, growing)
		a := f.fail()
		var saved bytes.Buffer
		must.NoError(t, statestore.Persist(&saved, f.store.Snapshot()))
		restored, err := statestore.Restore(&saved)
		must.NoError(t, err)
		f.store = restored
		f.leader = f.successor()
		f.start()
		f.waits(a, 30*time.Second)
	})
	t.Run("an evaluation for another reason", func(t *testing.T) {
		f := newFailing(t, growing)
		a := f.fail()
		f.node("n3")
		f.edit(f.job, func(j *cluster.Job) { j.Priority = 60 })
		f.start()
		f.waits(a, 30*time.Second)
	})
	t.Run("a version with other tasks", func(t *testing.T) {
		f := newFailing(t, none)
		f.staysDown(f.fail())
		f.edit(f.job, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Env = map[string]string{"MENDED": "1"} })
		f.start()
		must.NotNil(t, f.running())
	})
	t.Run("a version with another policy", func(t *testing.T) {
		f := newFailing(t, none)
		a := f.fail()
		f.staysDown(a)
		f.edit(f.job, policy(constant))
		f.start()
		must.NotNil(t, f.running(), must.Sprint("it ended longer ago than the delay"))
	})
	t.Run("a job that is stopped", func(t *testing.T) {
		for _, purge := range []bool{false, true} {
			f := newFailing(t, growing)
			a := f.fail()
			f.stopJob(f.job, purge)
			f.start()
			must.True(t, f.leader.Step(f.now).IsZero(), must.Sprint("the scheduler is quiet"))
			f.now = f.now.Add(time.Hour)
			f.start()
			must.Nil(t, f.running())
			if !purge {
				must.Eq(t, "", scheduler.Needs(f.view().WorkView(), f.alloc(a.ID)))
			}
		}
	})
	t.Run("a smaller count", func(t *testing.T) {
		f := newFailing(t, growing)
		a := f.fail()
		f.edit(f.job, func(j *cluster.Job) { j.TaskGroups[0].Count = 0 })
		f.start()
		must.True(t, f.leader.Step(f.now).IsZero(), must.Sprint("the scheduler is quiet"))
		must.True(t, f.alloc(a.ID).Concluded(), must.Sprint("the row is not kept for ever"))
		f.edit(f.job, func(j *cluster.Job) { j.TaskGroups[0].Count = 1 })
		f.start()
		must.NotNil(t, f.running())
	})
	t.Run("a clock that is set back", func(t *testing.T) {
		f := newFailing(t, growing)
		f.fail()
		f.now = f.now.Add(-time.Hour)
		f.start() // Run reads the clock again after some time
		must.NotNil(t, f.running())
	})
	t.Run("no room when it is due", func(t *testing.T) {
		f := newFailing(t, growing)
		a := f.fail()
		f.status("n1", cluster.NodeDown)
		f.status("n2", cluster.NodeDown)
		f.now = f.now.Add(30 * time.Second)
		f.start()
		must.Nil(t, f.running())
		must.NotNil(t, first(f.view().WorkView().BlockedEvals()))
		f.status("n1", cluster.NodeReady)
		f.start()
		must.NotNil(t, f.running())
		must.Eq(t, a.ID, f.running().PreviousAllocation)
	})
	t.Run("an operator who requires a replacement", func(t *testing.T) {
		for _, p := range []cluster.ReschedulePolicy{none, growing} {
			f := newFailing(t, p)
			f.job = f.cell.job("forced", cluster.JobService, 1, policy(p))
			f.seed(f.job, "n1", func(a *cluster.Allocation) {
				a.ClientStatus, a.EndedAt, a.DesiredTransition.ForceReschedule = cluster.ClientFailed, f.now, true
			})
			f.start()
			must.NotNil(t, f.running())
			must.NotEq(t, "", string(f.running().PreviousAllocation))
		}
	})
}

// A plan that comes too early is refused, as is one that gives up a slot that is no surplus.
func TestCheck_replacementsBeforeTheyAreDue(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]cluster.ReschedulePolicy{"delayed": growing, "spent": none} {
		for _, description := range []string{cluster.DescRescheduled, cluster.DescNotNeeded} {
			t.Run(fmt.Sprint(name, description), func(t *testing.T) {
				t.Parallel()
				f := newFailing(t, p)
				a := f.fail()
				f.edit(f.job, func(j *cluster.Job) { j.Priority = 60 })
				eval := first(f.view().WorkView().PendingEvals())
				next := a.Copy()
				next.ID, next.PreviousAllocation, next.Job = "next", a.ID, f.view().Job(f.job)
				accepted, refused := scheduler.Check(f.view().WorkView(), &cluster.Plan{
					At: f.now.Add(10 * time.Second), Eval: eval, SnapshotIndex: f.index,
					Stops: []cluster.PlanStop{{Alloc: a.ID, Description: description}}, Places: []*cluster.Allocation{next},
				})
				must.SliceEmpty(t, accepted.Stops)
				must.SliceEmpty(t, accepted.Places)
				must.Len(t, 2, refused)
			})
		}
	}
}

// The rows that count for later decisions are kept, and no others.
func TestNeeds_rowsOfAPolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy cluster.ReschedulePolicy
		counts int
	}{
		"constant": {constant, 0}, "growing": {growing, 7}, "limited": {thrice, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFailing(t, test.policy)
			var ended []cluster.AllocID
			for range 9 {
				ended = append(ended, f.fail().ID)
				must.Eq(t, "it waits for its replacement", scheduler.Needs(f.view().WorkView(), f.alloc(ended[len(ended)-1])))
				f.now = f.now.Add(time.Hour) // an interval, and not longer than the longest delay
				f.start()
			}
			kept := 0
			for _, id := range ended {
				if scheduler.Needs(f.view().WorkView(), f.alloc(id)) != "" {
					kept++
				}
			}
			must.Eq(t, test.counts, kept)
		})
	}
}

// Allocations fail at random times: replacements come neither before their time nor, in a quiet cluster, after it, and a
// new leader in between changes nothing.
func TestReschedule_randomFailures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]cluster.ReschedulePolicy{growing, constant, thrice, none}).Draw(t, "policy")
		c := newCell(t)
		c.node("n1")
		leader, l := c.leader()
		count := rapid.IntRange(1, 3).Draw(t, "count")
		k := c.job("web", cluster.JobService, count, policy(p))
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			l.lead(leader)
			c.progress()
			l.lead(leader)
			running := c.wanted(k)
			for a := range c.view().AllocsByJob(k) {
				r := c.view().Job(k).Rescheduling(a, c.view().Alloc)
				if a.ClientTerminal() && !a.ServerTerminal() && a.NextAllocation == "" {
					must.True(t, r.Spent || r.Waits(c.now), must.Sprint("it is due, and not replaced"))
					running = append(running, a)
				}
				if next := c.view().Alloc(a.NextAllocation); next != nil {
					must.False(t, next.CreateTime.Before(a.EndedAt.Add(10*time.Second)), must.Sprint("it is replaced too early"))
				}
			}
			must.Len(t, count, running, must.Sprint("each slot is held"))
			if live := c.wanted(k); len(live) > 0 && rapid.Bool().Draw(t, "fails") {
				c.report(c.statusReport(live[0], cluster.ClientFailed))
			}
			if rapid.Bool().Draw(t, "other leader") {
				leader = l.successor()
			}
			c.now = c.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
		}
	})
}
