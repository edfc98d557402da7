package world_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// fate is the answer to one proposed write, and its effect.
type fate struct {
	answer raftwrite.Outcome
	// applied: the write was applied. after: it was applied after the end
	// of its proposer's term.
	applied, after bool
}

func (f fate) String() string {
	switch {
	case !f.applied:
		return fmt.Sprintf("answered %s, never applied", f.answer)
	case f.after:
		return fmt.Sprintf("answered %s, applied after its term", f.answer)
	}
	return fmt.Sprintf("answered %s, applied in its term", f.answer)
}

// The simulated log of package world produces every fate of a write that real raft produces. The
// test cuts real leaders off, loses answers to them, and makes them transfer their leadership
// with entries in flight. Each fate that a write then has also occurs in a simulated world.
//
//race:skip the same goroutines as TestRaft_AnswersAreTrueWhenTheLeaderChanges
func TestLog_fatesOfRealRaft(t *testing.T) {
	t.Parallel()
	model, real := map[fate]int{}, map[fate]int{}
	barriers := 0
	for seed := range uint64(30) {
		modelMix(t, seed, model)
	}
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { barriers += realMix(t, seed, real) })
	}
	must.GreaterEq(t, 15, barriers)
	t.Logf("model: %v", model)
	t.Logf("raft:  %v", real)
	for f := range real {
		must.MapContainsKey(t, model, f, must.Sprintf("real raft produced a fate that the simulated log never produced: %s", f))
	}
	for _, f := range []fate{
		{raftwrite.Applied, true, false}, {raftwrite.Unknown, true, true}, {raftwrite.Unknown, false, false}, {raftwrite.Rejected, false, false},
	} {
		must.Positive(t, real[f], must.Sprintf("real raft never produced the fate: %s", f))
	}
}

// modelMix counts the fates of the drainers' writes in a simulated world whose leaders
// change.
func modelMix(t *testing.T, seed uint64, mix map[fate]int) {
	t.Helper()
	chance := world.Stream(seed, "mix")
	w, err := world.New(world.Options{
		Seed: seed + 1, Servers: 3, Commit: scenario.Range{Min: time.Millisecond, Max: 300 * time.Millisecond},
		Drainer: drainer.NodeDrainerConfig{MaxIDsPerEntry: 2},
	})
	must.NoError(t, err)
	f := &fixture{World: w}
	f.register(t, "n1", "n2", "n3")
	f.placeJob(t, newJob(cluster.JobBatch, "sum", 12), slices.Repeat([]cluster.NodeID{"n1"}, 12)...)

	answers := map[int]raftwrite.Outcome{}
	applied := map[uint64]int{} // the term in which an entry was applied, by index
	w.Observe(world.Observer{
		Answered: func(_, n int, a shims.Answer) { answers[n] = a.Outcome },
		Applied:  func(a world.Applied) { applied[a.Index] = w.Term() },
	})
	w.Log.OnWrite(func(world.Write) world.Fate { return world.Fate(chance.IntN(int(world.NoRoom))) })
	for i := range 10 {
		e := world.Election{Next: -1, Lost: chance.IntN(2) == 0, Unaware: time.Duration(chance.IntN(int(time.Second)))}
		at := time.Duration(i)*time.Second + time.Duration(chance.IntN(int(time.Second)))
		w.At(world.Epoch.Add(at), func() error { return w.Servers.Depose(e) })
	}
	w.Operator.Propose(w.Operator.Requests.Drain("n1", &cluster.DrainSpec{Deadline: -1}, ""), nil)
	_, err = w.Run(world.Epoch.Add(time.Minute))
	must.NoError(t, err)

	logged := map[int]fate{}
	for index, e := range w.Log.Entries() {
		if e.Proposed && e.Source == world.FromDrainer {
			logged[e.N] = fate{applied: true, after: applied[index] > e.Term}
		}
	}
	for n, outcome := range answers {
		f := logged[n]
		f.answer = outcome
		mix[f]++
	}
}

// barrier is an answered barrier of a new leader.
type barrier struct {
	term uint64
	// last is the index of the last entry that the leader had applied before the answer.
	last uint64
}

// watch requests a barrier at each start of a term of the server, until stop is closed.
func (s *raftServer) watch(stop <-chan struct{}, answered func(barrier)) {
	for {
		select {
		case <-stop:
			return
		case leads := <-s.raft.LeaderCh():
			term := s.raft.CurrentTerm()
			if !leads {
				continue
			}
			s.proposer.Barrier(func(a shims.Answer) {
				if entries := s.applied(); a.Outcome == raftwrite.Applied && len(entries) > 0 {
					answered(barrier{term, entries[len(entries)-1].index})
				}
			})
		}
	}
}

// strikes returns the faults that the test causes at a leader.
func strikes(servers []*raftServer) []func(leader *raftServer) {
	return []func(*raftServer){
		func(leader *raftServer) { // the leader is cut off for a short time
			connect(servers, leader)
			time.Sleep(time.Second / 10)
			connect(servers, nil)
		},
		func(leader *raftServer) { // the leader is cut off until another server leads
			connect(servers, leader)
			time.Sleep(4 * time.Second)
			connect(servers, nil)
		},
		func(leader *raftServer) { // the answers of the other servers are lost
			leader.transport.loseAnswers.Store(true)
			time.Sleep(4 * time.Second)
			leader.transport.loseAnswers.Store(false)
		},
		func(leader *raftServer) { _ = leader.raft.LeadershipTransfer().Error() }, // it may fail
	}
}

// realMix proposes writes to three real servers all the time, while leaders change, and counts
// the fates of the writes. It returns the number of answered barriers of new leaders.
func realMix(t *testing.T, seed uint64, mix map[fate]int) (answered int) {
	t.Helper()
	servers := startRaft(t)
	chance := world.Stream(seed, "mix")
	var mu sync.Mutex
	answers := map[string]raftwrite.Outcome{} // guarded by mu
	var barriers []barrier                    // guarded by mu
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i, s := range servers {
		running.Go(func() {
			s.watch(stop, func(b barrier) {
				mu.Lock()
				defer mu.Unlock()
				barriers = append(barriers, b)
			})
		})
		running.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d/%d", i, n)
				s.proposer.Propose(eval(name), func(a shims.Answer) {
					mu.Lock()
					defer mu.Unlock()
					answers[name] = a.Outcome
				})
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	for range 5 {
		time.Sleep(time.Second + time.Duration(chance.IntN(int(time.Second))))
		all := strikes(servers)
		all[chance.IntN(len(all))](leading(t, servers))
	}
	close(stop)
	running.Wait()
	time.Sleep(2 * shims.DefaultTimeout) // then every write is answered, and every server has every entry

	mu.Lock()
	defer mu.Unlock()
	final := servers[0].applied()
	checkOrder(t, final, barriers)
	own, logged := map[string]bool{}, map[string]bool{}
	for _, s := range servers {
		must.Eq(t, final, s.applied())
		maps.Copy(own, s.own)
	}
	for _, e := range final {
		logged[e.name] = true
	}
	for name, outcome := range answers {
		mix[fate{outcome, logged[name], logged[name] && !own[name]}]++
	}
	return len(barriers)
}

// checkOrder fails the test if an entry comes after one of a later term, or after the
// barrier of a later leader.
func checkOrder(t *testing.T, entries []raftEntry, barriers []barrier) {
	t.Helper()
	for i, e := range entries {
		if i > 0 {
			must.LessEq(t, e.term, entries[i-1].term)
		}
		for _, b := range barriers {
			must.False(t, e.term < b.term && e.index > b.last, must.Sprintf("%+v comes after the barrier %+v", e, b))
		}
	}
}

// leading waits for a leader that a quorum follows.
func leading(t *testing.T, servers []*raftServer) *raftServer {
	t.Helper()
	for range 1000 {
		for _, s := range servers {
			if s.raft.State() == raft.Leader && s.raft.VerifyLeader().Error() == nil {
				return s
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("no server leads")
	return nil
}
