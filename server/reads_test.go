package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A consistent read shows every acknowledged write, on a new leader too.
func TestServer_consistentReadsSeeWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{})
		register(t, g, 5, 1)
		must.NoError(t, g.Kill(g.Leader()))
		leader := do(t, g, func(ctx context.Context, s *server.Server) error { return s.Consistent(ctx) })
		for i := range 5 {
			must.NotNil(t, leader.Store().Snapshot().Node(cluster.NodeID(fmt.Sprintf("n%d", i+1))))
		}
		must.NoError(t, leader.CaughtUp(t.Context()))

		// Raft's own entries never reach the state, and are not waited for.
		must.NoError(t, leader.Raft().Barrier(time.Second).Error())
		must.NoError(t, leader.Consistent(t.Context()))
	})
}

// Reads at the same time share a question, and cost no entry.
func TestServer_consistentReadsWriteNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{})
		register(t, g, 1, 1)
		leader := g.Leader()
		must.NoError(t, leader.Consistent(t.Context()))
		synctest.Wait()
		before := leader.Raft().LastIndex()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := leader.Consistent(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		must.Eq(t, before, leader.Raft().LastIndex())
	})
}

// Only a server that still leads reads consistently.
func TestServer_consistentReadsAreTheLeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{})
		register(t, g, 1, 1)
		leader := g.Leader()
		var others []*server.Server
		for _, s := range g.Servers() {
			if s != leader {
				others = append(others, s)
				must.ErrorIs(t, s.Consistent(t.Context()), raft.ErrNotLeader)
				must.ErrorIs(t, s.CaughtUp(t.Context()), shims.ErrRejected)
			}
		}
		for _, s := range others {
			must.NoError(t, g.Kill(s))
		}
		synctest.Wait()              // raft also counts answers that were on their way before the call
		must.True(t, leader.Leads()) // it has not detected the loss yet
		must.ErrorIs(t, leader.Consistent(t.Context()), shims.ErrRejected)
		must.NoError(t, leader.Shutdown())
		must.ErrorIs(t, leader.Consistent(t.Context()), shims.ErrClosed)
	})
}

// WhileLeading runs for as long as the server leads, and is waited for.
func TestServer_whileLeading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, terms := 0, 0
		g := newGroup(t, server.GroupConfig{Server: server.Config{WhileLeading: func(ctx context.Context) {
			mu.Lock()
			running, terms = running+1, terms+1
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			running--
			mu.Unlock()
		}}})
		register(t, g, 1, 1)
		synctest.Wait()
		must.Eq(t, 1, running)
		must.NoError(t, g.Kill(g.Leader()))
		register(t, g, 1, 1)
		synctest.Wait()
		must.Eq(t, 1, running)
		must.Eq(t, 2, terms)
		must.NoError(t, g.Shutdown())
		must.Eq(t, 0, running)
	})
}
