package shims_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// moodyRaft answers each entry after a random time in a random way, or never.
type moodyRaft struct {
	mu     sync.Mutex
	random *rand.Rand
	// taken are the names of the entries that it may have applied.
	taken map[string]bool
	lost  []chan struct{}
	t     testing.TB
}

func (r *moodyRaft) Apply(entry []byte, timeout time.Duration) raft.ApplyFuture {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &fakeFuture{done: make(chan struct{})}
	switch r.random.IntN(5) {
	case 0:
		f.err = raft.ErrNotLeader
	case 1:
		r.lost = append(r.lost, f.done)
		fallthrough
	default:
		f.response, f.index = shims.ChangeApplied{}, 1
		r.taken[string(decode[*shims.NodeUpdateStatus](r.t, entry).Node)] = true
	}
	if len(r.lost) == 0 || r.lost[len(r.lost)-1] != f.done {
		time.AfterFunc(time.Duration(r.random.IntN(int(20*time.Millisecond))), func() { close(f.done) })
	}
	return f
}

func (r *moodyRaft) Barrier(time.Duration) raft.Future { panic("this test requires no barrier") }

// In any order of events each queued write is answered exactly once, and a write that raft may
// apply is never answered as rejected.
func TestProposer_EveryWriteGetsOneCorrectAnswer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := &moodyRaft{random: rand.New(rand.NewPCG(seed, 1)), taken: make(map[string]bool), t: t}
			p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{QueueSize: 8, MaxInFlight: 4, Timeout: 15 * time.Millisecond})
			got := newAnswers(t)
			var queued atomic.Int64
			var writers sync.WaitGroup
			for w := range 4 {
				writers.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(w)))
					for i := range 50 {
						name := fmt.Sprintf("%d/%d", w, i)
						if p.Propose(named(name), got.of(name)) {
							queued.Add(1)
						}
						time.Sleep(time.Duration(random.IntN(int(5 * time.Millisecond))))
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
			p.Close()
			writers.Wait()

			must.MapLen(t, int(queued.Load()), got.outcomes())
			for name, outcome := range got.outcomes() {
				switch outcome {
				case raftwrite.Rejected:
					must.False(t, r.taken[name], must.Sprintf("%s was answered rejected", name))
				case raftwrite.Applied:
					must.True(t, r.taken[name], must.Sprintf("%s was answered applied", name))
				}
			}
			outcomes := make(map[raftwrite.Outcome]bool)
			for _, outcome := range got.outcomes() {
				outcomes[outcome] = true
			}
			must.MapLen(t, 3, outcomes, must.Sprint("every outcome occurred"))
			for _, lost := range r.lost {
				close(lost)
			}
		})
	}
}

func TestProposer_ARejectedWriteIsNeverProposed(t *testing.T) {
	t.Parallel()
	// A write times out when raft gets it. The goroutine that runs first decides the outcome.
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			r, got := new(fakeRaft), newAnswers(t)
			p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{MaxInFlight: 1, Timeout: time.Second})
			p.Propose(named("first"), got.of("first"))
			p.Propose(named("second"), got.of("second"))
			synctest.Wait()
			time.AfterFunc(time.Second, func() { r.answer(1, shims.ChangeApplied{}, nil) })
			time.Sleep(time.Second)
			synctest.Wait()
			proposed := slices.Contains(r.names(t), "second")
			must.Eq(t, proposed, got.get("second").Outcome == raftwrite.Unknown)
			r.answerAll(raft.ErrNotLeader)
		})
	}
}

// A write that Close answers while it is encoded is not proposed.
func TestProposer_AWriteRejectedByCloseIsNeverProposed(t *testing.T) {
	t.Parallel()
	large := new(shims.EvalUpdate)
	for i := range 2_000 {
		large.Evals = append(large.Evals, jobEval(cluster.EvalID(fmt.Sprint(i))))
	}
	for range 10 {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{QueueSize: 1})
		p.Propose(large, got.of("large"))
		for !p.Propose(named("next"), got.of("next")) {
			runtime.Gosched() // until the large one has left the queue
		}
		p.Close()
		unknown := 0
		for _, name := range []string{"large", "next"} {
			if outcome := got.get(name).Outcome; outcome == raftwrite.Unknown {
				unknown++
			} else {
				must.Eq(t, raftwrite.Rejected, outcome)
			}
		}
		must.Eq(t, unknown, r.waiting(), must.Sprint("unknown if and only if raft has it"))
		r.answerAll(raft.ErrNotLeader)
	}
}
