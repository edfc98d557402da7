package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// gate holds the log of a server up at the first entry that it is for.
type gate struct {
	// is reports whether the gate holds the message. It is set before the test waits for reached.
	is            func(shims.Message) bool
	reached, open chan struct{}
	held          bool // used by raft's goroutine for the FSM alone
}

func newGate(is func(shims.Message) bool) *gate {
	return &gate{is: is, reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) applied(a shims.Applied) {
	if g.held || !g.is(a.Message) {
		return
	}
	g.held = true
	close(g.reached)
	<-g.open
}

func addNode(t *testing.T, s *server.Server, id cluster.NodeID) {
	t.Helper()
	result.Of(s.Requests().RegisterNode(t.Context(), testNode(id))).OK(t)
}

// A node goes down while a plan with a replacement for a drained allocation is on its way to it.
// The request that reports the node was created before the replacement. Without an evaluation of its
// job, the drain waited for ever.
func TestServer_aReplacementOnANodeThatGoesDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		marks := newGate(func(m shims.Message) bool {
			_, is := m.(*shims.AllocUpdateDesiredTransition)
			return is
		})
		g := newGroup(t, server.GroupConfig{Servers: 1, Server: server.Config{OnApply: marks.applied}})
		register(t, g, 1, 2)
		runs(t, g, 2)
		s := g.Leader()
		addNode(t, s, "n2")
		drain(t, g, "n1", &cluster.DrainSpec{})
		<-marks.reached
		synctest.Wait() // the scheduler has read the marks, and proposed a replacement on n2
		type answer struct {
			index uint64
			err   error
		}
		down := make(chan answer, 1)
		go func() {
			w, err := s.Requests().UpdateNodeStatus(t.Context(), "n2", cluster.NodeDown)
			down <- answer{index: w.Index, err: err}
		}()
		synctest.Wait() // proposed, from a state without the replacement
		for range s.Store().Snapshot().WorkView().LiveAllocsByNode("n2") {
			t.Fatal("there is nothing on n2 yet")
		}
		close(marks.open)
		lost := <-down
		must.NoError(t, lost.err)
		landed := 0
		for a := range s.Store().Snapshot().AllocsByNode("n2") {
			landed++
			// Its status is not checked: the scheduler may have changed it already.
			must.Less(t, lost.index, a.CreateIndex, must.Sprint("the plan was before the node's loss in the log"))
		}
		must.Eq(t, 1, landed)

		addNode(t, s, "n3")
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			for _, node := range []cluster.NodeID{"n1", "n3"} {
				result.Of(s.Requests().ReportAllocs(t.Context(), clustertest.Progress(s.Store().Snapshot().WorkView().LiveAllocsByNode(node), time.Now()))).OK(t)
			}
		}
		state := s.Store().Snapshot()
		must.False(t, state.Node("n1").Draining(), must.Sprint("the drain ends"))
		for range state.WorkView().LiveAllocsByNode("n2") {
			t.Fatal("something is left on the node that is down")
		}
	})
}

// A system job and a node are registered at the same time: the node's registration is created before the job
// is stored, and the scheduler's snapshot has no node.
func TestServer_aSystemJobAndANodeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := newGate(func(m shims.Message) bool {
			r, is := m.(*shims.NodeRegister)
			return is && r.Node.ID == "n1"
		})
		job := newGate(func(m shims.Message) bool {
			_, is := m.(*shims.JobRegister)
			return is
		})
		g := newGroup(t, server.GroupConfig{Servers: 1, Server: server.Config{OnApply: func(a shims.Applied) {
			first.applied(a)
			job.applied(a)
		}}})
		s := do(t, g, func(ctx context.Context, s *server.Server) error { return s.Consistent(ctx) })
		done := make(chan error, 3)
		go func() {
			_, err := s.Requests().RegisterNode(t.Context(), testNode("n1"))
			done <- err
		}()
		<-first.reached
		go func() {
			_, err := s.Requests().RegisterJob(t.Context(), clustertest.Job("logs", cluster.JobSystem, 1), cluster.JobRegistration{})
			done <- err
		}()
		synctest.Wait()
		go func() {
			_, err := s.Requests().RegisterNode(t.Context(), testNode("n2"))
			done <- err
		}()
		synctest.Wait()
		close(first.open)
		<-job.reached
		synctest.Wait() // the scheduler plans the job in a state with n1 alone
		close(job.open)
		for range 3 {
			must.NoError(t, <-done)
		}
		time.Sleep(time.Minute)
		for _, id := range []cluster.NodeID{"n1", "n2"} {
			must.Eq(t, 1, s.Store().Snapshot().Usage(id).Live, must.Sprint(id))
		}
	})
}

// What is answered without an entry is true of the newest state, which a server that
// does not lead has not.
func TestServer_onlyTheLeaderAnswersWithoutAnEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{})
		register(t, g, 1, 1)
		for _, s := range g.Servers() {
			if s.Leads() {
				continue
			}
			await(t, s, "the node", func(s *statestore.Snapshot) bool { return s.Node("n1") != nil && s.Job(webKey) != nil })
			_, err := s.Requests().UpdateEligibility(t.Context(), "n1", cluster.NodeEligible)
			must.ErrorIs(t, err, shims.ErrRejected)
			_, err = s.Requests().EvaluateNode(t.Context(), "n9")
			must.ErrorIs(t, err, shims.ErrRejected)
			_, err = s.Requests().EvaluateJob(t.Context(), cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "none"})
			must.ErrorIs(t, err, shims.ErrRejected)
		}
		s := g.Leader()
		_, err := s.Requests().EvaluateNode(t.Context(), "n9")
		must.ErrorIs(t, err, statestore.ErrNodeNotFound)
		_, err = s.Requests().StopJob(t.Context(), cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "none"}, cluster.JobStop{})
		must.ErrorIs(t, err, statestore.ErrJobNotFound)
	})
}
