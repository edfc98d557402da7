package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// virtualServer is a leader without raft in virtual time: the state machine, the drainer, the scheduler
// and the collection with their defaults, and the clients of all nodes.
type virtualServer struct {
	*testCluster
	now time.Time
	// log holds the proposals that are not applied. An entry takes entryTime.
	log []proposed

	drainer   *drainer.Term
	wake      chan struct{} // of the drainer
	scheduler *scheduler.Scheduler
	collector *collect.Collector
	clients   *simclient.Fleet
	// drainAt, scheduleAt, collectAt and reportAt are the times of their next steps; zero is never.
	drainAt, scheduleAt, collectAt, reportAt time.Time
	// evals and allocs count what was made.
	evals, allocs int
}

// proposed is an entry, or a barrier if message is nil. reply receives the answer.
type proposed struct {
	message shims.Message
	reply   func(shims.Answer)
}

// newVirtualServer begins a term in an empty cluster. runs returns how long batch work runs.
func newVirtualServer(tb testing.TB, runs func(*cluster.Allocation, *rand.Rand) time.Duration) *virtualServer {
	s := &virtualServer{testCluster: newCluster(tb, clusterPlan{jobSize: 1}), now: epoch, wake: make(chan struct{}, 1)}
	s.edit(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.MaxVersion) })
	var errs [4]error
	s.drainer, errs[0] = drainer.NewTerm(drainer.NodeDrainerConfig{
		Raft: shims.NewDrainerApplier(s), NewEvalID: s.newEvalID,
	}, s.fsm.Store().Reader(), s.wake)
	s.scheduler, errs[1] = scheduler.New(scheduler.Config{
		Snapshot: func() scheduler.View { return s.state().WorkView() }, Applier: shims.NewSchedulerApplier(s),
		IDs: scheduler.IDs{Alloc: s.newAllocID, Eval: s.newEvalID},
	})
	s.collector, errs[2] = collect.NewCollector(collect.Options{}, s.now)
	o := simclient.Options{Snapshot: func() simclient.State { return s.state().WorkView() }, Applier: s, Seed: 1}
	o.Behave = func(a *cluster.Allocation, rng *rand.Rand) simclient.Behaviour {
		b := simclient.Options{}.Draw(a, rng)
		b.Run = runs(a, rng)
		return b
	}
	s.clients, errs[3] = simclient.New(o)
	for _, err := range errs {
		must.NoError(tb, err)
	}
	s.drainAt, s.scheduleAt, s.collectAt, s.reportAt = s.now, s.now, s.now, s.now
	return s
}

func (s *virtualServer) state() *statestore.Snapshot { return s.fsm.Store().Snapshot() }

func (s *virtualServer) newEvalID() cluster.EvalID {
	s.evals++
	return cluster.EvalID(allocOf(1, s.evals))
}

func (s *virtualServer) newAllocID() cluster.AllocID {
	s.allocs++
	return allocOf(2, s.allocs)
}

// propose proposes an entry that needs no answer.
func (s *virtualServer) propose(m shims.Message) { s.Propose(m, func(shims.Answer) {}) }

// Propose implements [shims.Proposals].
func (s *virtualServer) Propose(m shims.Message, reply func(shims.Answer)) (queued bool) {
	s.log = append(s.log, proposed{m, reply})
	return true
}

// Barrier implements [shims.Proposals].
func (s *virtualServer) Barrier(reply func(shims.Answer)) (queued bool) { return s.Propose(nil, reply) }

// Report implements [simclient.Applier].
func (s *virtualServer) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	evals := scheduler.ReportEvals(s.state().WorkView(), reports, s.now, s.newEvalID)
	return s.Propose(&shims.AllocClientUpdate{At: s.now, Reports: reports, Evals: evals}, func(a shims.Answer) {
		reply(a.Outcome == raftwrite.Applied)
	})
}

// runUntil does all work until the time.
func (s *virtualServer) runUntil(end time.Time) {
	for {
		s.stepAll()
		if len(s.log) > 0 {
			s.now = s.now.Add(entryTime)
			s.commit()
			continue
		}
		next := end
		for _, at := range []time.Time{s.drainAt, s.scheduleAt, s.collectAt, s.reportAt} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if !next.After(s.now) && len(s.wake)+len(s.clients.Woken()) > 0 {
			continue
		}
		if s.now = next; !s.now.Before(end) {
			return
		}
	}
}

// stepAll makes the steps that are due.
func (s *virtualServer) stepAll() {
	due := func(at time.Time) bool { return !at.IsZero() && !s.now.Before(at) }
	if received(s.wake) || due(s.drainAt) {
		s.drainAt = s.drainer.Step(s.now)
	}
	if due(s.scheduleAt) {
		s.scheduleAt = s.scheduler.Step(s.now)
	}
	if received(s.clients.Woken()) || due(s.reportAt) {
		s.reportAt = s.clients.Step(s.now)
	}
	if due(s.collectAt) {
		var request *collect.Request
		if request, s.collectAt = s.collector.Step(s.state().WorkView(), s.now); request != nil {
			next := s.collectAt
			s.collectAt = time.Time{} // until the answer
			s.Propose(&shims.Collect{At: s.now, Request: *request}, func(shims.Answer) { s.collectAt = next })
		}
	}
}

// received reports whether there was a value in the channel.
func received(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// commit applies the first entry of the log. It wakes the scheduler, and the clients of the nodes on
// which the entry placed or stopped allocations.
func (s *virtualServer) commit() {
	p := s.log[0]
	s.log[0] = proposed{} // the slice outlives the entry
	s.log = s.log[1:]
	answer := shims.Answer{Outcome: raftwrite.Applied}
	if p.message != nil {
		answer.Response = s.apply(p.message)
	}
	answer.Index = s.index
	s.scheduleAt = s.now
	if r, is := answer.Response.(shims.PlanApplied); is {
		for _, stop := range r.Accepted.Stops {
			s.clients.Changed(s.state().Alloc(stop.Alloc).NodeID)
		}
		for _, place := range r.Accepted.Places {
			s.clients.Changed(place.NodeID)
		}
	}
	p.reply(answer)
}
