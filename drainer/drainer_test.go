package drainer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// server is a NodeDrainer over a state and a log that takes its time: a write is
// answered after the latency, or when somebody says so.
type server struct {
	*NodeDrainer
	state *memory
	raft  *fakeRaft
	stop  chan struct{}
}

// newServer starts the goroutine that answers writes, in the caller's bubble.
func newServer(t *testing.T, w *town, latency time.Duration) *server {
	s := &server{state: newMemory(w), stop: make(chan struct{})}
	s.raft = &fakeRaft{state: s.state, kick: make(chan struct{}, 1)}
	d, err := NewNodeDrainer(NodeDrainerConfig{Raft: s.raft})
	must.NoError(t, err)
	s.NodeDrainer = d
	go func() {
		for {
			select {
			case <-s.stop:
				return
			case <-s.raft.kick:
				time.Sleep(latency)
				for s.raft.answer() {
				}
			}
		}
	}()
	return s
}

func (s *server) enable(t *testing.T, enabled bool) {
	t.Helper()
	began := time.Now()
	must.NoError(t, s.SetEnabled(enabled, s.state))
	must.Eq(t, 0, time.Since(began), must.Sprint("SetEnabled waited"))
}

// end disables the drainer and ends the bubble's goroutines. What the drainer
// leaves running would keep the bubble from ending, and fail the test.
func (s *server) end(t *testing.T) {
	s.enable(t, false)
	close(s.stop)
}

func TestNodeDrainer_Drains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(2, 0)
		w.place("b1", w.job("batch", cluster.JobBatch), "n1")
		d := w.drain("n1", time.Hour)
		d.Strategy.ForceDeadline = time.Now().Add(time.Hour)
		s := newServer(t, w, time.Millisecond)
		s.enable(t, true)
		time.Sleep(time.Hour - time.Millisecond)
		synctest.Wait()
		must.SliceEmpty(t, s.raft.written())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		must.Len(t, 1, s.raft.written())
		must.True(t, s.raft.written()[0].marks.At.Equal(d.Strategy.ForceDeadline))
		time.Sleep(time.Millisecond)
		s.state.commit(func(w *town) { w.migrate(w.alloc("b1")) })
		time.Sleep(time.Second)
		must.SliceEmpty(t, s.state.now().draining())
		s.end(t)
	})
}

// A drainer that is enabled again starts anew; the term before has ended by then.
func TestNodeDrainer_EnabledTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newTown(2, 2), 0)
		s.enable(t, true)
		synctest.Wait()
		first := s.state.feed()
		s.enable(t, true)
		must.True(t, first.closed)
		must.False(t, s.state.feed().closed)
		s.state.commit(func(w *town) { w.drain("n1", 0) })
		synctest.Wait()
		must.Len(t, 1, s.raft.written(), must.Sprint("one term, one write"))
		s.end(t)
		must.True(t, s.state.feed().closed)
	})
}

// Leadership that comes and goes as fast as it can, from several goroutines: at
// the end nothing is left running, and the last word holds.
func TestNodeDrainer_FlipsFast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(2, 2)
		w.drain("n1", 0)
		s := newServer(t, w, time.Millisecond)
		var flipping sync.WaitGroup
		for worker := range 4 {
			flipping.Go(func() {
				for i := range 250 {
					if err := s.SetEnabled((i+worker)%2 == 0, s.state); err != nil {
						t.Error(err)
					}
				}
			})
		}
		flipping.Wait()
		s.enable(t, true)
		time.Sleep(time.Second)
		must.True(t, s.state.now().alloc("a1").Marked())
		s.end(t)
		s.state.mu.Lock()
		defer s.state.mu.Unlock()
		must.GreaterEq(t, 500, len(s.state.feeds))
		for i, f := range s.state.feeds {
			must.True(t, f.closed, must.Sprintf("feed %d", i))
		}
	})
}

// Stopped while a write is in flight: it does not wait for the write, whose
// answer comes when nobody wants it any more, and nothing is written after it.
func TestNodeDrainer_StoppedDuringAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(2, 2)
		w.drain("n1", 0)
		s := newServer(t, w, time.Minute)
		s.enable(t, true)
		time.Sleep(time.Minute + time.Second) // the barrier is answered, the mark in flight
		synctest.Wait()
		must.Len(t, 1, s.raft.written())
		s.enable(t, false)
		time.Sleep(time.Hour)
		must.True(t, s.state.now().alloc("a1").Marked(), must.Sprint("the log applied it all the same"))
		s.state.commit(func(w *town) { w.drain("n2", -1) })
		time.Sleep(time.Hour)
		must.Len(t, 1, s.raft.written())
		s.end(t)
	})
}

// Reports are asked for while the drainer decides.
func TestNodeDrainer_ReportsWhileItSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(3, 9)
		w.drain("n1", 0)
		s := newServer(t, w, 0)
		s.enable(t, true)
		var working sync.WaitGroup
		working.Go(func() {
			for i := range 200 {
				s.state.commit(func(w *town) { w.group().Count = 3 + i%9 })
			}
		})
		for range 2 {
			working.Go(func() {
				for range 200 {
					report, err := s.Explain("n1")
					if err != nil || len(report.Allocs) != 3 {
						t.Errorf("report %v, error %v", report, err)
					}
					all, err := s.Status()
					if err != nil || len(all) != 1 {
						t.Errorf("status %v, error %v", all, err)
					}
				}
			})
		}
		working.Wait()
		s.end(t)
	})
}

func TestNodeDrainer_Errors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newTown(1, 1), 0)
		_, err := s.Explain("n1")
		must.ErrorIs(t, err, ErrNotEnabled)
		_, err = s.Status()
		must.ErrorIs(t, err, ErrNotEnabled)

		s.enable(t, true)
		synctest.Wait()
		for _, id := range []cluster.NodeID{"n1", "nobody"} {
			_, err = s.Explain(id)
			must.ErrorIs(t, err, ErrNotDraining)
			must.EqError(t, err, "explaining node "+string(id)+": node is not draining")
		}
		all, err := s.Status()
		must.NoError(t, err)
		must.SliceEmpty(t, all)

		err = s.SetEnabled(true, nil)
		must.EqError(t, err, "enabling the node drainer: a term needs a state to read")
		_, err = s.Status()
		must.ErrorIs(t, err, ErrNotEnabled, must.Sprint("it is disabled after an error"))
		must.NoError(t, s.SetEnabled(false, nil))
		s.end(t)
	})
}

// On a store that was replaced there is nothing to report: what it says is not
// true any more.
func TestNodeDrainer_AbandonedStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(1, 1)
		w.drain("n1", 0)
		s := newServer(t, w, 0)
		s.enable(t, true)
		synctest.Wait()
		s.state.abandon()
		synctest.Wait()
		_, err := s.Explain("n1")
		must.ErrorIs(t, err, ErrAbandoned)
		_, err = s.Status()
		must.ErrorIs(t, err, ErrAbandoned)
		s.state.commit(func(w *town) { w.alloc("a1").ClientStatus = cluster.ClientComplete })
		time.Sleep(time.Hour)
		must.Len(t, 1, s.raft.written())

		s.state = newMemory(s.state.now()) // as restored from a snapshot
		s.raft.state = s.state
		s.enable(t, true)
		synctest.Wait()
		must.SliceEmpty(t, s.state.now().draining())
		s.end(t)
	})
}

// While a time is awaited the loop looks at the wall clock every half minute, in
// case the clock was set; while none is, it has no timer at all.
func TestTimerAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timer := time.NewTimer(time.Hour)
		began := time.Now()
		waited := func(at time.Time) time.Duration {
			from := time.Now()
			<-timerAt(timer, at)
			return time.Since(from)
		}
		must.Eq(t, 30*time.Second, waited(began.Add(time.Hour)))
		must.Eq(t, 10*time.Second, waited(time.Now().Add(10*time.Second)))
		must.Eq(t, 0, waited(began))
		must.Nil(t, timerAt(timer, time.Time{}))
	})
}
