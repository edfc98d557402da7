package drainer

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// server is a NodeDrainer over a state and a log. A write is answered after the latency.
type server struct {
	*NodeDrainer
	state *memory
	raft  *fakeRaft
	stop  chan struct{}
}

// newServer starts the goroutine that answers writes, in the caller's bubble.
func newServer(t *testing.T, w *fixture.Cluster, latency time.Duration) *server {
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

// end disables the drainer and ends the bubble's goroutines. A goroutine that the drainer leaves
// behind keeps the bubble from ending, and fails the test.
func (s *server) end(t *testing.T) {
	s.enable(t, false)
	close(s.stop)
}

func TestNodeDrainer_Drains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fixture.NewCluster(2, 0)
		w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
		d := w.StartDrain("n1", time.Hour)
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
		s.state.commit(func(w *fixture.Cluster) { migrate(w, w.Alloc("b1")) })
		time.Sleep(time.Second)
		must.SliceEmpty(t, s.state.draining())
		s.end(t)
	})
}

// A drainer that is enabled twice has one term. The first has ended.
func TestNodeDrainer_EnabledTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, fixture.NewCluster(2, 2), 0)
		s.enable(t, true)
		synctest.Wait()
		first := s.state.feed()
		s.enable(t, true)
		must.True(t, first.closed)
		must.False(t, s.state.feed().closed)
		s.state.commit(func(w *fixture.Cluster) { w.StartDrain("n1", 0) })
		synctest.Wait()
		must.Len(t, 1, s.raft.written(), must.Sprint("one term, one write"))
		s.end(t)
		must.True(t, s.state.feed().closed)
	})
}

// Several goroutines enable and disable the drainer as fast as they can. At the end no goroutine
// is left, and the last call counts.
func TestNodeDrainer_EnabledAndDisabledConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fixture.NewCluster(2, 2)
		w.StartDrain("n1", 0)
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
		must.True(t, s.state.now().Alloc("a1").Marked())
		s.end(t)
		s.state.mu.Lock()
		defer s.state.mu.Unlock()
		must.GreaterEq(t, 500, len(s.state.feeds))
		for i, f := range s.state.feeds {
			must.True(t, f.closed, must.Sprintf("feed %d", i))
		}
	})
}

// A drainer is disabled while a write is in flight. It does not wait for the answer, ignores the
// answer, and writes nothing more.
func TestNodeDrainer_StoppedDuringAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fixture.NewCluster(2, 2)
		w.StartDrain("n1", 0)
		s := newServer(t, w, time.Minute)
		s.enable(t, true)
		time.Sleep(time.Minute + time.Second) // the barrier is answered, the mark in flight
		synctest.Wait()
		must.Len(t, 1, s.raft.written())
		s.enable(t, false)
		time.Sleep(time.Hour)
		must.True(t, s.state.now().Alloc("a1").Marked(), must.Sprint("the log applied the mark"))
		s.state.commit(func(w *fixture.Cluster) { w.StartDrain("n2", -1) })
		time.Sleep(time.Hour)
		must.Len(t, 1, s.raft.written())
		s.end(t)
	})
}

// Reports are read while the drainer steps.
func TestNodeDrainer_ReportsWhileItSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fixture.NewCluster(3, 9)
		w.StartDrain("n1", 0)
		s := newServer(t, w, 0)
		s.enable(t, true)
		var working sync.WaitGroup
		working.Go(func() {
			for i := range 200 {
				s.state.commit(func(w *fixture.Cluster) { w.TaskGroup().Count = 3 + i%9 })
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
		s := newServer(t, fixture.NewCluster(1, 1), 0)
		_, err := s.Explain("n1")
		must.ErrorIs(t, err, rules.ErrNotEnabled)
		_, err = s.Status()
		must.ErrorIs(t, err, rules.ErrNotEnabled)

		s.enable(t, true)
		synctest.Wait()
		for _, id := range []cluster.NodeID{"n1", "unknown"} {
			_, err = s.Explain(id)
			must.ErrorIs(t, err, rules.ErrNotDraining)
			must.EqError(t, err, "explaining node "+string(id)+": node is not draining")
		}
		all, err := s.Status()
		must.NoError(t, err)
		must.SliceEmpty(t, all)

		err = s.SetEnabled(true, nil)
		must.EqError(t, err, "enabling the node drainer: a term needs a state to read: it is nil, or a nil pointer")
		_, err = s.Status()
		must.ErrorIs(t, err, rules.ErrNotEnabled, must.Sprint("it is disabled after an error"))
		must.NoError(t, s.SetEnabled(false, nil))
		s.end(t)
	})
}

// A drainer over a store that was replaced reports nothing.
func TestNodeDrainer_AbandonedStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fixture.NewCluster(1, 1)
		w.StartDrain("n1", 0)
		s := newServer(t, w, 0)
		s.enable(t, true)
		synctest.Wait()
		s.state.abandon()
		synctest.Wait()
		_, err := s.Explain("n1")
		must.ErrorIs(t, err, rules.ErrAbandoned)
		_, err = s.Status()
		must.ErrorIs(t, err, rules.ErrAbandoned)
		s.state.commit(func(w *fixture.Cluster) { w.Alloc("a1").ClientStatus = cluster.ClientComplete })
		time.Sleep(time.Hour)
		must.Len(t, 1, s.raft.written())

		s.state = newMemory(s.state.now()) // as restored from a snapshot
		s.raft.state = s.state
		s.enable(t, true)
		synctest.Wait()
		must.SliceEmpty(t, s.state.draining())
		s.end(t)
	})
}

// While the loop waits for a time it reads the wall clock every 30 seconds. While it waits for no
// time it has no timer.
func TestTimerAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timer := time.NewTimer(time.Hour)
		began := time.Now()
		waited := func(at time.Time) time.Duration {
			from := time.Now()
			<-timerAt(timer, at, wallClock())
			return time.Since(from)
		}
		must.Eq(t, 30*time.Second, waited(began.Add(time.Hour)))
		must.Eq(t, 10*time.Second, waited(time.Now().Add(10*time.Second)))
		must.Eq(t, 0, waited(began))
		must.Nil(t, timerAt(timer, time.Time{}, wallClock()))
	})
}

// OnStep is called after each step, and only then.
func TestNodeDrainer_OnStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, fixture.NewCluster(1, 0), time.Millisecond)
		steps := 0
		s.config.OnStep = func(took time.Duration) {
			must.Eq(t, 0, took) // no time passes in a step
			steps++
		}
		s.enable(t, true)
		time.Sleep(time.Second)
		synctest.Wait()
		first := steps
		must.Positive(t, first)
		time.Sleep(time.Hour)
		synctest.Wait()
		must.Eq(t, first, steps)
		s.state.commit(func(w *fixture.Cluster) { w.StartDrain("n1", time.Hour) })
		time.Sleep(time.Second)
		synctest.Wait()
		must.Greater(t, first, steps)
		s.end(t)
	})
}

// The clock is set back by an hour while the loop waits for a deadline. The loop steps when it next
// reads the clock, so that no wait becomes longer.
func TestNodeDrainer_ClockSetBackDuringAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := fixture.NewCluster(1, 0)
		w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
		d := w.StartDrain("n1", time.Hour)
		d.Strategy.ForceDeadline = time.Now().Add(time.Hour)
		s := newServer(t, w, time.Millisecond)
		var back atomic.Bool
		s.now = func() time.Time {
			if back.Load() {
				return wallClock().Add(-time.Hour)
			}
			return wallClock()
		}
		steps := 0
		s.config.OnStep = func(time.Duration) { steps++ }
		s.enable(t, true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		before := steps
		back.Store(true)
		time.Sleep(clockCheck)
		synctest.Wait()
		must.Eq(t, before+1, steps)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		must.Eq(t, before+1, steps, must.Sprint("the clock goes forward again"))
		s.end(t)
	})
}

// SetEnabled returns after the goroutine has ended, although a step is still running when it is
// called.
func TestNodeDrainer_SetEnabledJoinsTheGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, fixture.NewCluster(1, 0), time.Millisecond)
		finish := make(chan struct{})
		s.config.OnStep = func(time.Duration) { <-finish }
		s.enable(t, true)
		synctest.Wait() // the first step runs
		disabled := false
		go func() {
			s.enable(t, false)
			disabled = true
		}()
		synctest.Wait()
		must.False(t, disabled, must.Sprint("a step was running"))
		close(finish)
		synctest.Wait()
		must.True(t, disabled)
		time.Sleep(time.Second) // the barrier of the step is answered
		s.end(t)
	})
}
