package shims_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// errorOutcomes is the outcome of every error that a future of Apply or Barrier
// can end with.
var errorOutcomes = []struct {
	err  error
	want raftwrite.Outcome
}{
	{nil, raftwrite.Applied},
	{raft.ErrNotLeader, raftwrite.Rejected},
	{raft.ErrEnqueueTimeout, raftwrite.Rejected},
	{raft.ErrLeadershipTransferInProgress, raftwrite.Rejected},
	{raft.ErrLeadershipLost, raftwrite.Unknown},
	{raft.ErrAbortedByRestore, raftwrite.Unknown},
	{raft.ErrRaftShutdown, raftwrite.Unknown},
	{raft.ErrLogNotFound, raftwrite.Unknown},
	{errors.New("no space left on device"), raftwrite.Unknown},
	{fmt.Errorf("forwarded: %w", raft.ErrNotLeader), raftwrite.Rejected},
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for _, c := range errorOutcomes {
		must.Eq(t, c.want, shims.OutcomeOf(c.err), must.Sprint(c.err))
	}
}

func TestProposer_AnswersByRaftsError(t *testing.T) {
	t.Parallel()
	for _, c := range errorOutcomes {
		synctest.Test(t, func(t *testing.T) {
			r, got := new(fakeRaft), newAnswers(t)
			p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{})
			must.True(t, p.Propose(named("message"), got.of("message")))
			must.True(t, p.Barrier(got.of("barrier")))
			synctest.Wait()
			r.answer(7, shims.ChangeApplied{}, c.err)
			r.answer(8, nil, c.err)
			synctest.Wait()

			must.Eq(t, map[string]raftwrite.Outcome{"message": c.want, "barrier": c.want}, got.outcomes())
			if c.err == nil {
				must.Eq(t, shims.Answer{Outcome: raftwrite.Applied, Index: 7, Response: shims.ChangeApplied{}}, got.get("message"))
				must.NoError(t, got.get("barrier").Err)
				return
			}
			for _, name := range []string{"message", "barrier"} {
				answer := got.get(name)
				must.ErrorIs(t, answer.Err, c.err)
				must.Nil(t, answer.Response)
				must.Zero(t, answer.Index)
			}
		})
	}
}

func TestProposer_AnInvalidResponseLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{})
		p.Propose(named("panicked"), got.of("panicked"))
		p.Propose(named("stranger"), got.of("stranger"))
		synctest.Wait()
		r.answer(1, nil, nil)
		r.answer(2, "done", nil)
		synctest.Wait()
		must.Eq(t, raftwrite.Unknown, got.get("panicked").Outcome)
		must.ErrorIs(t, got.get("panicked").Err, shims.ErrNilResponse)
		must.Eq(t, raftwrite.Unknown, got.get("stranger").Outcome)
		must.ErrorContains(t, got.get("stranger").Err, "the FSM answered a string")
	})
}

func TestProposer_ProposesInOrderAndRefusesWritesThatDoNotFit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{QueueSize: 3, MaxInFlight: 2})
		for i := range 2 { // to raft
			must.True(t, p.Propose(named(fmt.Sprint(i)), got.of(fmt.Sprint(i))))
			synctest.Wait()
		}
		for i := 2; i < 5; i++ { // into the queue
			must.True(t, p.Propose(named(fmt.Sprint(i)), got.of(fmt.Sprint(i))))
			synctest.Wait()
		}
		must.False(t, p.Propose(named("too many"), got.of("too many")))
		must.False(t, p.Barrier(got.of("barrier too many")))
		must.Eq(t, []string{"0", "1"}, r.names(t), must.Sprint("no more than MaxInFlight"))

		r.answer(1, shims.ChangeApplied{}, nil)
		synctest.Wait()
		must.True(t, p.Barrier(got.of("barrier")), must.Sprint("there is room again"))
		for r.waiting() > 0 {
			r.answer(2, shims.ChangeApplied{}, nil)
			synctest.Wait()
		}
		must.Eq(t, []string{"0", "1", "2", "3", "4", "barrier"}, r.names(t))
		must.Eq(t, []string{"0", "1", "2", "3", "4", "barrier"}, got.order)
	})
}

func TestProposer_AFutureThatRaftForgetsBlocksNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{MaxInFlight: 2, Timeout: 10 * time.Second})
		p.Propose(named("forgotten"), got.of("forgotten"))
		synctest.Wait()
		forgotten := r.futures[0]
		r.futures = nil

		time.Sleep(10*time.Second - time.Nanosecond)
		synctest.Wait()
		must.MapEmpty(t, got.outcomes())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		must.Eq(t, raftwrite.Unknown, got.get("forgotten").Outcome)
		must.ErrorIs(t, got.get("forgotten").Err, shims.ErrNoAnswer)

		p.Propose(named("next"), got.of("next"))
		synctest.Wait()
		r.answer(2, shims.ChangeApplied{}, nil)
		synctest.Wait()
		must.Eq(t, raftwrite.Applied, got.get("next").Outcome)

		close(forgotten.done) // too late: no second answer
		synctest.Wait()
	})
}

func TestProposer_AWriteThatNeverReachedRaftIsRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{MaxInFlight: 1, QueueSize: 1, Timeout: 10 * time.Second})
		p.Propose(named("in flight"), got.of("in flight"))
		synctest.Wait()
		p.Propose(named("queued"), got.of("queued"))
		must.False(t, p.Propose(named("no room"), got.of("no room")))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		must.Eq(t, map[string]raftwrite.Outcome{"in flight": raftwrite.Unknown, "queued": raftwrite.Rejected}, got.outcomes())
		must.ErrorIs(t, got.get("queued").Err, shims.ErrNoAnswer)
		must.True(t, p.Propose(named("later"), got.of("later")), must.Sprint("an expired write leaves the queue"))

		r.answerAll(raft.ErrLeadershipLost)
		synctest.Wait()
		must.Eq(t, []string{"in flight", "later"}, r.names(t), must.Sprint("a rejected write is never proposed"))
		r.answerAll(raft.ErrLeadershipLost)
	})
}

func TestProposer_RaftIsTooBusyToTakeAnEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{EnqueueTimeout: time.Second})
		r.setBusy(make(chan struct{}))
		p.Propose(named("unlucky"), got.of("unlucky"))
		time.Sleep(time.Second)
		synctest.Wait()
		must.Eq(t, raftwrite.Rejected, got.get("unlucky").Outcome)
		must.ErrorIs(t, got.get("unlucky").Err, raft.ErrEnqueueTimeout)
	})
}

func TestProposer_AnEncodingErrorRejectsTheWriteAndUsesNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{MaxInFlight: 1})
		p.Propose(&shims.NodeRegister{}, got.of("incomplete"))
		p.Propose(named("next"), got.of("next"))
		synctest.Wait()
		must.Eq(t, raftwrite.Rejected, got.get("incomplete").Outcome)
		must.ErrorContains(t, got.get("incomplete").Err, "node is missing")
		must.Eq(t, []string{"next"}, r.names(t))
		r.answerAll(raft.ErrNotLeader)
	})
}

func TestProposer_CloseAnswersEverythingAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{MaxInFlight: 2})
		for _, name := range []string{"a", "b", "c", "d"} {
			p.Propose(named(name), got.of(name))
			synctest.Wait()
		}
		start := time.Now()
		p.Close()
		must.Zero(t, time.Since(start))
		must.Eq(t, map[string]raftwrite.Outcome{
			"a": raftwrite.Unknown, "b": raftwrite.Unknown, "c": raftwrite.Rejected, "d": raftwrite.Rejected,
		}, got.outcomes())
		must.Eq(t, []string{"a", "b", "c", "d"}, got.order)
		must.ErrorIs(t, got.get("a").Err, shims.ErrClosed)
		must.False(t, p.Propose(named("late"), got.of("late")))
		must.False(t, p.Barrier(got.of("late barrier")))

		r.answerAll(nil) // too late: no second answer
		p.Close()
		must.Eq(t, []string{"a", "b"}, r.names(t))
	})
}

func TestProposer_CloseWaitsAtMostTheEnqueueTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{EnqueueTimeout: time.Second})
		r.setBusy(make(chan struct{}))
		p.Propose(named("being offered"), got.of("being offered"))
		synctest.Wait()
		start := time.Now()
		go p.Close()
		synctest.Wait()
		must.Eq(t, raftwrite.Unknown, got.get("being offered").Outcome, must.Sprint("raft may still take it"))
		p.Close()
		must.Eq(t, time.Second, time.Since(start))
	})
}

func TestProposer_AReplyMayPropose(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*fakeRaft){
		"answered": func(r *fakeRaft) { r.answer(1, shims.ChangeApplied{}, nil) },
		"expired":  func(r *fakeRaft) { time.Sleep(shims.DefaultTimeout) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r, got := new(fakeRaft), newAnswers(t)
			p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{})
			p.Propose(named("first"), func(a shims.Answer) {
				got.of("first")(a)
				must.True(t, p.Propose(named("second"), got.of("second")))
			})
			synctest.Wait()
			answer(r)
			synctest.Wait()
			r.answerAll(raft.ErrNotLeader)
			synctest.Wait()
			must.Eq(t, []string{"first", "second"}, got.order, must.Sprint(name))
		})
	}
}

func TestProposer_LargeEntriesAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
		p.Propose(named("small"), got.of("small"))
		p.Propose(named(strings.Repeat("x", raft.SuggestedMaxDataSize)), got.of("large"))
		synctest.Wait()
		must.Eq(t, 1, strings.Count(log.String(), "larger than raft suggests: type=NodeUpdateStatus bytes="))
		r.answerAll(raft.ErrNotLeader)
	})
}

// A request body of 4 MB made an entry of 21 MB. The proposer does not refuse large writes of the
// servers: they would make the same write again.
func TestProposer_TextsOfClientsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{})
		large := &cluster.Job{ID: "large", Datacenters: []string{strings.Repeat("x", shims.MaxRequestEntry)}}
		p.Propose(&shims.JobRegister{Job: large}, got.of("job"))
		p.Propose(&shims.NodeRegister{Node: &cluster.Node{ID: "n1", Name: strings.Repeat("x", shims.MaxRequestEntry)}}, got.of("node"))
		p.Propose(&shims.ApplyPlan{Plan: cluster.Plan{
			Eval: &cluster.Evaluation{ID: "e1"}, Places: []*cluster.Allocation{{ID: "a1", Job: large}},
		}}, got.of("plan"))
		p.Propose(largestReport(), got.of("report"))
		synctest.Wait()
		for _, name := range []string{"job", "node"} {
			must.Eq(t, raftwrite.Rejected, got.get(name).Outcome)
			must.ErrorIs(t, got.get(name).Err, shims.ErrTooLarge)
		}
		r.answerAll(raft.ErrNotLeader)
		synctest.Wait()
		for _, name := range []string{"plan", "report"} {
			must.ErrorIs(t, got.get(name).Err, raft.ErrNotLeader, must.Sprint(name))
		}
	})
}

// largestReport is about the number of allocations that the API accepts in one client report.
func largestReport() *shims.AllocClientUpdate {
	m := new(shims.AllocClientUpdate)
	for range 10_000 {
		id := strings.Repeat("x", 36)
		m.Reports = append(m.Reports, cluster.AllocReport{
			Alloc: cluster.AllocID(id), Node: cluster.NodeID(id), ClientStatus: cluster.ClientRunning, Healthy: new(true), HealthyAt: noon, At: noon,
		})
	}
	return m
}

func TestProposer_InvalidOptionsAreNamed(t *testing.T) {
	t.Parallel()
	fsm := shims.NewFSM(shims.FSMConfig{})
	for want, opts := range map[string]shims.Options{
		"Options.QueueSize is -1 and must be > 0":        {QueueSize: -1},
		"Options.MaxInFlight is -2 and must be > 0":      {MaxInFlight: -2},
		"Options.EnqueueTimeout is -3ns and must be > 0": {EnqueueTimeout: -3},
		"Options.Timeout is -4ns and must be > 0":        {Timeout: -4},
	} {
		_, err := shims.NewProposer(new(fakeRaft), fsm, opts)
		must.EqError(t, err, want)
	}
	_, err := shims.NewProposer(nil, fsm, shims.Options{})
	must.EqError(t, err, "a proposer needs a raft and its FSM")
	_, err = shims.NewProposer(new(fakeRaft), nil, shims.Options{})
	must.EqError(t, err, "a proposer needs a raft and its FSM")
}
