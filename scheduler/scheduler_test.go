package scheduler_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// A new leader plans nothing before a barrier shows it what the old one wrote.
func TestNothingBeforeTheBarrier(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 2)
	s, log := c.leader()
	s.Step(c.now)
	s.Step(c.now)
	must.Eq(t, 1, log.barriers)
	must.Zero(t, log.plans)

	// One that fails is repeated, each time later.
	log.answer(rejected)
	must.Eq(t, c.now.Add(scheduler.DefaultRetryBase), s.Step(c.now))
	c.now = c.now.Add(scheduler.DefaultRetryBase)
	s.Step(c.now)
	must.Eq(t, 2, log.barriers)
	log.answer(vanished)
	must.Eq(t, c.now.Add(2*scheduler.DefaultRetryBase), s.Step(c.now))
	c.now = c.now.Add(2 * scheduler.DefaultRetryBase)
	log.lead(s)
	must.Len(t, 2, c.wanted(job))
}

func TestNothingToDoIsQuiet(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.job("web", cluster.JobService, 20) // ten fit
	s, log := c.leader()
	log.lead(s)
	plans, index := log.plans, c.index
	for range 3 {
		c.now = c.now.Add(time.Hour)
		must.Eq(t, time.Time{}, s.Step(c.now))
	}
	must.Eq(t, plans, log.plans)
	must.Eq(t, index, c.index)

	// Capacity that is none for this job causes a plan, and nothing is written.
	c.node("n2", func(n *cluster.Node) { n.Datacenter = "dc2"; n.NodePool = "other" })
	log.lead(s)
	must.Eq(t, plans, log.plans)
	must.Eq(t, time.Time{}, s.Step(c.now.Add(time.Hour)))
}

// A job has one plan in flight, a scheduler a few, higher priorities first.
func TestPlansInFlight(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	for i := range 5 {
		c.job(fmt.Sprintf("job-%d", i), cluster.JobService, 1, func(j *cluster.Job) { j.Priority = 10 + i })
	}
	s, log := c.leader(func(c *scheduler.Config) { c.MaxInFlight = 2 })
	s.Step(c.now)
	log.answer(fine)
	s.Step(c.now)
	must.Eq(t, []cluster.JobID{"job-4", "job-3"}, log.planned())
	c.evaluate(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "job-4"})
	s.Step(c.now)
	must.Eq(t, []cluster.JobID{"job-4", "job-3"}, log.planned())
	log.answerAll(fine)
	s.Step(c.now)
	must.Eq(t, []cluster.JobID{"job-4", "job-2"}, log.planned())
}

// Plans in flight do not compete for the same room.
func TestPlansInFlightShareTheRoom(t *testing.T) {
	c := parallel(t)
	for i := range 4 {
		c.node(fmt.Sprintf("n%d", i))
	}
	for i := range 20 {
		c.job(fmt.Sprintf("job-%02d", i), cluster.JobService, 2)
	}
	s, log := c.leader(func(c *scheduler.Config) { c.MaxInFlight = 5 })
	log.lead(s)
	must.Zero(t, log.refused)
	must.Eq(t, 20, log.plans)
	// A write whose outcome is unknown may still take its room.
	c.job("more", cluster.JobService, 1, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = 1 })
	s.Step(c.now)
	log.answer(late)
	c.job("yet-more", cluster.JobService, 1)
	log.lead(s)
	must.Zero(t, log.refused)
}

// A view may show a plan before its answer comes. Once its placements used room twice: the next job was
// blocked although it had room, and nothing woke it.
func TestPlanIsShownBeforeItsAnswer(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.job("first", cluster.JobService, 6)
	s, log := c.leader()
	s.Step(c.now)
	log.answer(fine) // the barrier
	s.Step(c.now)
	first := log.queue[0]
	log.queue = nil
	answer := log.commit(first)
	next := c.job("next", cluster.JobSystem, 1)
	log.lead(s)
	must.Len(t, 1, c.wanted(next))
	first.reply(answer)
	log.lead(s)
	must.Len(t, 1, c.wanted(next))
}

// The room of a plan in flight is free again if the plan is not applied. A job that was blocked by it is
// planned again.
func TestRoomOfAPlanThatFails(t *testing.T) {
	for name, fails := range map[string]func(l *log, s *scheduler.Scheduler) *scheduler.Scheduler{
		"refused": func(l *log, s *scheduler.Scheduler) *scheduler.Scheduler {
			l.answerAll(fine)
			return s
		},
		"rejected": func(l *log, s *scheduler.Scheduler) *scheduler.Scheduler {
			l.answer(rejected)
			l.answerAll(fine)
			return s
		},
		"never applied": func(l *log, s *scheduler.Scheduler) *scheduler.Scheduler {
			l.answer(vanished)
			l.answerAll(fine)
			return s
		},
		"lost with its leader": func(l *log, _ *scheduler.Scheduler) *scheduler.Scheduler {
			l.queue = l.queue[1:]
			l.answerAll(fine)
			return l.successor()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			first := c.job("first", cluster.JobService, 8)
			next := c.job("next", cluster.JobService, 4)
			s, log := c.leader()
			s.Step(c.now)
			log.answer(fine) // the barrier
			s.Step(c.now)
			must.Eq(t, []cluster.JobID{"first", "next"}, log.planned())
			c.stopJob(first, true)
			s = fails(log, s)
			must.Len(t, 2, c.wanted(next))
			for range 3 {
				log.lead(s)
				c.now = c.now.Add(scheduler.DefaultRetryMax)
			}
			must.Len(t, 4, c.wanted(next))
			must.True(t, s.Step(c.now).IsZero())
		})
	}
}

func TestRejectedPlanIsMadeAgain(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	s, log := c.leader()
	s.Step(c.now)
	log.answer(fine)
	s.Step(c.now)
	wait := scheduler.DefaultRetryBase
	for range 4 {
		must.Len(t, 1, log.queue)
		log.answer(rejected)
		must.Eq(t, c.now.Add(wait), s.Step(c.now))
		must.SliceEmpty(t, log.queue)
		c.now = c.now.Add(wait)
		wait *= 2
		s.Step(c.now)
	}
	log.lead(s)
	must.Len(t, 1, c.wanted(job))
	must.Eq(t, 1, log.barriers)
}

// If the outcome of a plan is unknown, its job waits for a barrier. Others
// go on.
func TestUnknownOutcome(t *testing.T) {
	for name, f := range map[string]fate{"vanished": vanished, "silent": silent, "late": late} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("web", cluster.JobService, 2)
			s, log := c.leader()
			s.Step(c.now)
			log.answer(fine)
			s.Step(c.now)
			log.answer(f)
			other := c.job("other", cluster.JobService, 1)
			s.Step(c.now)
			must.Eq(t, 2, log.barriers)
			must.Eq(t, []cluster.JobID{"other"}, log.planned())
			c.now = c.now.Add(time.Hour)
			s.Step(c.now)
			must.Eq(t, 2, log.barriers)
			log.lead(s)
			must.Len(t, 2, c.wanted(job))
			must.Len(t, 2, c.allocs(job, func(*cluster.Allocation) bool { return true }))
			must.Len(t, 1, c.wanted(other))
		})
	}
}

// What a barrier does not cover waits for the next one.
func TestUnknownAfterTheBarrierWasWritten(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	a, b := c.job("a", cluster.JobService, 1), c.job("b", cluster.JobService, 1)
	s, log := c.leader()
	s.Step(c.now)
	log.answer(fine)
	s.Step(c.now)
	must.Eq(t, []cluster.JobID{"a", "b"}, log.planned())
	log.answer(vanished)
	s.Step(c.now) // writes a barrier, behind the plan of b
	must.Eq(t, 2, log.barriers)
	barrier := log.queue[1]
	log.answer(late)          // b: in the log, but after the barrier
	log.queue = log.queue[1:] // the barrier
	delayed := log.delayed    // not applied by it
	log.delayed = nil
	barrier.reply(log.commit(barrier))
	log.delayed = delayed
	s.Step(c.now)
	must.Eq(t, 3, log.barriers)
	c.now = c.now.Add(scheduler.DefaultRetryMax)
	s.Step(c.now)
	must.Eq(t, []cluster.JobID{"a"}, log.planned())
	log.lead(s)
	must.Len(t, 1, c.wanted(a))
	must.Len(t, 1, c.wanted(b))
	must.Len(t, 1, c.allocs(b, func(*cluster.Allocation) bool { return true }))
}

// A log without room is tried again later.
func TestFullLog(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	for i := range 3 {
		c.job(fmt.Sprintf("job-%d", i), cluster.JobService, 1)
	}
	s, log := c.leader()
	log.room = 1
	log.queue = []*entry{nil}
	must.Eq(t, c.now.Add(scheduler.DefaultRetryBase), s.Step(c.now))
	log.queue = nil
	s.Step(c.now)
	log.answer(fine)
	must.Eq(t, c.now.Add(scheduler.DefaultRetryBase), s.Step(c.now))
	must.Eq(t, []cluster.JobID{"job-0"}, log.planned())
	log.lead(s)
	must.Eq(t, 3, log.plans)
}

// The log has no room for the plan of the last blocked evaluation. The scheduler tries it again.
// Regression: it waited until more capacity was added.
func TestFullLog_blocked(t *testing.T) {
	c := parallel(t)
	jobs := []cluster.JobKey{c.job("job-0", cluster.JobService, 1), c.job("job-1", cluster.JobService, 1)}
	s, log := c.leader()
	log.lead(s)
	c.now = c.now.Add(scheduler.DefaultBlockedInterval)
	c.node("n1")
	log.room = 1
	s.Step(c.now)
	must.Len(t, 1, log.queue)
	log.lead(s)
	c.now = c.now.Add(scheduler.DefaultBlockedInterval)
	log.lead(s)
	for _, job := range jobs {
		must.Len(t, 1, c.wanted(job))
	}
}

// A plan with more than fits an entry goes in parts; stops stay with their
// replacements.
func TestPlanInParts(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job := c.job("web", cluster.JobService, 9)
	s, log := c.leader(func(c *scheduler.Config) { c.MaxPlanParts = 5 })
	log.lead(s)
	must.Eq(t, 2, log.plans)
	must.Len(t, 9, c.wanted(job))
	c.progress()

	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkDeadline, c.wanted(job)...)
	log.plans = 0
	s.Step(c.now)
	part := log.queue[0].plan
	must.Len(t, 2, part.Stops)
	must.Len(t, 2, part.Places)
	for i, stop := range part.Stops {
		must.Eq(t, stop.Alloc, part.Places[i].PreviousAllocation)
	}
	must.Eq(t, cluster.EvalPending, part.Eval.Status)
	log.lead(s)
	must.Eq(t, 5, log.plans)
	must.Zero(t, log.refused)
	must.Len(t, 9, pick(c.wanted(job), on("n2")))
}

// A job may need more than any plan holds: what one plan of it costs depends on the
// parts of a plan and on the room there is, and what does not fit is counted.
func TestPlanOfAnEndlessJob(t *testing.T) {
	for _, test := range []struct {
		cpu           int64
		parts, queued int
		status        cluster.EvalStatus
	}{
		{0, 5, 0, cluster.EvalPending},
		{100, 5, 0, cluster.EvalPending},
		{500, 2, math.MaxInt - 2, cluster.EvalComplete},
	} {
		t.Run(fmt.Sprint(test.cpu), func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("web", cluster.JobService, 0)
			j := c.view().Job(job).Copy()
			j.TaskGroups[0].Count = math.MaxInt // as if it were in the log already
			j.TaskGroups[0].Tasks[0].Resources = cluster.Resources{CPU: test.cpu}
			c.write(func(txn *statestore.Txn) error { return txn.UpsertJob(j) })
			s, log := c.leader(func(c *scheduler.Config) { c.MaxPlanParts = 5 })
			s.Step(c.now)
			log.answer(fine)
			before := c.lastID
			s.Step(c.now)
			plan := log.queue[0].plan
			must.Len(t, test.parts, plan.Places)
			must.Eq(t, test.status, plan.Eval.Status)
			must.Eq(t, test.queued, plan.Eval.Queued["g"])
			must.LessEq(t, before+6, c.lastID, must.Sprint("allocations created, that of the next plan included"))
		})
	}
}

// Refused parts are planned again from the newer state, at once the first time.
func TestRefusedPartsAreMadeAgain(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job := c.job("web", cluster.JobService, 2)
	s, log := c.leader()
	s.Step(c.now)
	log.answer(fine)
	s.Step(c.now)
	c.drain(n1)
	c.node("n2")
	log.lead(s)
	must.Eq(t, 2, log.refused)
	must.Eq(t, []cluster.NodeID{"n2", "n2"}, nodesOf(c.wanted(job)))
}

// Blocked evaluations are planned when capacity has come, and not more often
// than the interval allows.
func TestBlockedEvaluationsWake(t *testing.T) {
	c := parallel(t)
	job := c.job("web", cluster.JobService, 5)
	s, log := c.leader()
	log.lead(s)
	must.SliceEmpty(t, c.wanted(job))
	one := func(n *cluster.Node) { n.MaxAllocs = 1 }

	c.node("n1", one)
	log.lead(s)
	must.Len(t, 1, c.wanted(job))
	c.node("n2", one)
	log.lead(s)
	must.Len(t, 1, c.wanted(job))
	must.Eq(t, c.now.Add(scheduler.DefaultBlockedInterval), s.Step(c.now))
	c.node("n3", one)
	c.now = c.now.Add(scheduler.DefaultBlockedInterval)
	log.lead(s)
	must.Len(t, 3, c.wanted(job))

	// A successor remembers nothing, and need not.
	c.node("n4", one)
	s = log.successor()
	log.lead(s)
	must.Len(t, 4, c.wanted(job))
	must.Eq(t, 1, len(collect(c, job)))
}

// What is out of touch for too long is lost on time, though nothing happens to
// wake the scheduler, and though another leader began the wait.
func TestLostOnTime(t *testing.T) {
	for _, change := range []bool{false, true} {
		t.Run(fmt.Sprintf("leader changes %v", change), func(t *testing.T) {
			c := parallel(t)
			n1 := c.node("n1")
			job := c.job("web", cluster.JobService, 1, lostAfter(time.Minute))
			s, log := c.leader()
			log.lead(s)
			c.progress()
			c.now = c.now.Add(time.Second)
			c.status(n1, cluster.NodeDisconnected)
			lost := c.now.Add(time.Minute)
			log.lead(s)
			must.Eq(t, cluster.ClientUnknown, c.wanted(job)[0].ClientStatus)
			if change {
				s = log.successor()
				log.lead(s)
			}
			must.Eq(t, lost, s.Step(c.now))
			c.now = lost.Add(-1)
			log.lead(s)
			must.Eq(t, cluster.ClientUnknown, c.allocs(job, on(n1))[0].ClientStatus)
			c.now = lost
			s.Step(c.now)
			log.answer(rejected) // its evaluation
			must.Eq(t, c.now.Add(scheduler.DefaultRetryBase), s.Step(c.now))
			c.now = c.now.Add(scheduler.DefaultRetryBase)
			log.lead(s)
			must.Eq(t, cluster.ClientLost, c.allocs(job, on(n1))[0].ClientStatus)
			must.Eq(t, time.Time{}, s.Step(c.now))
		})
	}
}

// A new leader finds the lost allocations of a node that is down or gone, without an evaluation
// for them.
func TestLostAndForgotten(t *testing.T) {
	down := func(txn *statestore.Txn, at time.Time) { _ = txn.UpdateNodeStatus("n1", cluster.NodeDown, at) }
	deleted := func(txn *statestore.Txn, at time.Time) { txn.DeleteNodes([]cluster.NodeID{"n1"}, at) }
	for name, test := range map[string]struct {
		count  int // of the job, and one node has room for ten
		forget func(*statestore.Txn, time.Time)
		want   int // how many run elsewhere then; if zero there is no other node
	}{
		"down":                      {2, down, 2},
		"gone":                      {2, deleted, 2},
		"down, while the job waits": {11, down, 0},
		"gone, while the job waits": {11, deleted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("web", cluster.JobService, test.count)
			s, log := c.leader()
			log.lead(s)
			if test.want > 0 {
				c.node("n2")
			}
			c.write(func(txn *statestore.Txn) error { test.forget(txn, c.now); return nil }) // and no evaluation
			must.Positive(t, c.view().Usage("n1").Live)
			s, log = c.leader()
			log.lead(s)
			must.Zero(t, c.view().Usage("n1").Live)
			must.Len(t, test.want, c.wanted(job))

			// What is already planned is not planned again.
			index := c.index
			s, log = c.leader()
			log.lead(s)
			must.Eq(t, index, c.index)
		})
	}
}

// One that returns in time is not lost.
func TestBackInTime(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job := c.job("web", cluster.JobService, 1, lostAfter(time.Minute))
	s, log := c.leader()
	log.lead(s)
	c.progress()
	c.status(n1, cluster.NodeDisconnected)
	log.lead(s)
	c.now = c.now.Add(30 * time.Second)
	c.status(n1, cluster.NodeReady)
	c.progress()
	log.lead(s)
	must.Eq(t, time.Time{}, s.Step(c.now))
	c.now = c.now.Add(time.Hour)
	log.lead(s)
	must.Len(t, 1, c.wanted(job))
	must.Eq(t, cluster.ClientRunning, c.wanted(job)[0].ClientStatus)
}

// The clock is set back by an hour during a wait. The wait does not become longer: once blocked work waited
// until the clock showed the old time again.
func TestWaitsAfterTheClockIsSetBack(t *testing.T) {
	for name, begin := range map[string]func(c *cell, l *log, s *scheduler.Scheduler){
		"between two plans of blocked work": func(c *cell, l *log, s *scheduler.Scheduler) {
			l.lead(s)
			c.node("n1", func(n *cluster.Node) { n.MaxAllocs = 1 })
			l.lead(s)
			c.node("n2", func(n *cluster.Node) { n.MaxAllocs = 1 })
		},
		"after a rejected plan": func(c *cell, l *log, s *scheduler.Scheduler) {
			c.node("n1")
			s.Step(c.now)
			l.answer(fine) // the barrier
			s.Step(c.now)
			l.answer(rejected)
		},
		"after a rejected barrier": func(c *cell, l *log, s *scheduler.Scheduler) {
			c.node("n1")
			s.Step(c.now)
			l.answer(rejected)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			job := c.job("web", cluster.JobService, 2)
			s, log := c.leader()
			begin(c, log, s)
			s.Step(c.now)
			c.now = c.now.Add(-time.Hour)
			wakeAt := s.Step(c.now)
			must.False(t, wakeAt.IsZero())
			must.LessEq(t, scheduler.DefaultRetryMax, wakeAt.Sub(c.now))
			c.now = wakeAt
			log.lead(s)
			must.Len(t, 2, c.wanted(job))
		})
	}
}

func TestConfigThatCannotWork(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	_, log := c.leader()
	good := scheduler.Config{Snapshot: func() scheduler.View { return c.view().WorkView() }, Applier: log}
	for field, spoil := range map[string]func(*scheduler.Config){
		"Snapshot":        func(c *scheduler.Config) { c.Snapshot = nil },
		"Applier":         func(c *scheduler.Config) { c.Applier = nil },
		"MaxInFlight":     func(c *scheduler.Config) { c.MaxInFlight = -1 },
		"MaxPlanParts":    func(c *scheduler.Config) { c.MaxPlanParts = 1 },
		"BlockedInterval": func(c *scheduler.Config) { c.BlockedInterval = -1 },
		"RetryBase":       func(c *scheduler.Config) { c.RetryBase = -1 },
		"RetryMax":        func(c *scheduler.Config) { c.RetryMax = 1 },
	} {
		config := good
		spoil(&config)
		_, err := scheduler.New(config)
		must.ErrorContains(t, err, "Config."+field)
	}
	s, err := scheduler.New(good)
	must.NoError(t, err)
	s.Step(c.now) // with random ids
}

// remote is an applier whose log is another goroutine's.
type remote chan *entry

func (r remote) ApplyPlan(p *cluster.Plan, reply scheduler.Reply) bool {
	r <- &entry{plan: p, reply: reply}
	return true
}

func (r remote) UpsertEvals(evals []*cluster.Evaluation, reply scheduler.Reply) bool {
	r <- &entry{evals: evals, reply: reply}
	return true
}

func (r remote) Barrier(reply scheduler.Reply) bool {
	r <- &entry{barrier: true, reply: reply}
	return true
}

// Run steps when it is woken and when time has come, and ends with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Hour + time.Second // between two checks of the clock
		c := newCell(t)
		c.now = time.Now().UTC()
		n1 := c.node("n1")
		job := c.job("web", cluster.JobService, 1, lostAfter(limit))
		entries := make(remote, 10)
		s, err := scheduler.New(scheduler.Config{Snapshot: func() scheduler.View { return c.view().WorkView() }, Applier: entries})
		must.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		log := &log{cell: c}
		answer := func() {
			for synctest.Wait(); len(entries) > 0; synctest.Wait() {
				e := <-entries
				e.reply(log.commit(e))
			}
		}
		answer()
		must.Len(t, 1, c.wanted(job))
		c.progress()
		c.status(n1, cluster.NodeDisconnected)
		s.Wake()
		answer()
		must.Eq(t, cluster.ClientUnknown, c.wanted(job)[0].ClientStatus)
		time.Sleep(limit)
		answer()
		must.SliceEmpty(t, c.wanted(job))
		cancel()
		<-done
	})
}

// The room of a plan that was rejected is free again, and a blocked job does not fit there. The next entry
// brings a node where it fits. Bug: the scheduler took the returned room for the capacity of that entry, so
// the job waited until another node came. Small seed 4400003078.
func TestCapacityAfterRoomIsReturned(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.job("first", cluster.JobService, 1)
	next := c.job("next", cluster.JobService, 1, func(j *cluster.Job) { j.Datacenters = []string{"dc2"} })
	s, log := c.leader()
	s.Step(c.now)
	log.answer(fine) // the barrier
	s.Step(c.now)
	must.Eq(t, []cluster.JobID{"first", "next"}, log.planned())
	log.answer(rejected)
	log.answer(fine)
	c.now = c.now.Add(scheduler.DefaultBlockedInterval)
	s.Step(c.now)
	must.SliceEmpty(t, log.queue, must.Sprint("the first job waits for its retry"))
	c.node("n2", func(n *cluster.Node) { n.Datacenter = "dc2" })
	c.now = c.now.Add(scheduler.DefaultBlockedInterval)
	log.lead(s)
	must.Len(t, 1, c.wanted(next))
}
