package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// hearing are servers in memory that keep heartbeats.
type hearing struct {
	t       *testing.T
	servers []*server.Server
	writers []writer
	// applying is held while entries wait with being answered.
	applying sync.Mutex
}

func newHearing(t *testing.T, n int) *hearing {
	h := &hearing{t: t}
	var transports []*raft.InmemTransport
	var voters []raft.Server
	for i := range n {
		address, transport := raft.NewInmemTransport("")
		transports = append(transports, transport)
		voters = append(voters, raft.Server{ID: raft.ServerID(fmt.Sprintf("s%d", i+1)), Address: address})
	}
	for i, from := range transports {
		for _, to := range transports {
			from.Connect(to.LocalAddr(), to)
		}
		beats := newHeartbeats(heartbeat.Options{}, hclog.NewNullLogger())
		s, err := server.New(server.Config{ID: voters[i].ID, Transport: from, Voters: voters, WhileLeading: beats.lead, OnApply: func(a shims.Applied) {
			h.applying.Lock()
			defer h.applying.Unlock()
			beats.applied(a)
		}})
		must.NoError(t, err)
		beats.server = s
		close(beats.ready)
		h.servers, h.writers = append(h.servers, s), append(h.writers, writer{server: s, heartbeats: beats})
		t.Cleanup(func() { must.NoError(t, s.Shutdown()) })
	}
	return h
}

// leader waits for a leader, and returns which it is.
func (h *hearing) leader() int {
	for {
		for i, s := range h.servers {
			if s.Consistent(h.t.Context()) == nil {
				return i
			}
		}
		time.Sleep(10 * time.Millisecond) // synctest's
	}
}

func (h *hearing) register(n int) {
	w := h.writers[h.leader()]
	for i := range n {
		_, err := w.RegisterNode(h.t.Context(), &cluster.Node{ID: nodeID(i), Status: cluster.NodeReady})
		must.NoError(h.t, err)
	}
}

func nodeID(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%d", i)) }

// statuses counts the nodes by status, as the leader knows them.
func (h *hearing) statuses() map[cluster.NodeStatus]int {
	counts := make(map[cluster.NodeStatus]int)
	for n := range h.servers[h.leader()].Store().Snapshot().Nodes() {
		counts[n.Status]++
	}
	return counts
}

// Nodes without heartbeats become down, and ready with the next heartbeat.
func TestHeartbeats_missedAndHeardAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, 1)
		h.register(3)
		w := h.writers[0]
		for range 10 {
			time.Sleep(5 * time.Second)
			_, err := w.Heartbeat(t.Context(), nodeID(0))
			must.NoError(t, err)
		}
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 1, cluster.NodeDown: 2}, h.statuses())
		before := w.server.Store().Snapshot().Index()
		_, err := w.Heartbeat(t.Context(), nodeID(0))
		must.NoError(t, err)
		must.Eq(t, before, w.server.Store().Snapshot().Index()) // nothing to write
		ttl, err := w.Heartbeat(t.Context(), nodeID(1))
		must.NoError(t, err)
		must.Between(t, heartbeat.DefaultMinTTL, ttl, 2*heartbeat.DefaultMinTTL)
		must.Eq(t, cluster.NodeReady, w.server.Store().Snapshot().Node(nodeID(1)).Status)
		_, err = w.PurgeNode(t.Context(), nodeID(2))
		must.NoError(t, err)
		_, err = w.Heartbeat(t.Context(), nodeID(2))
		must.ErrorIs(t, err, httpapi.ErrNotFound)
		must.EqError(t, err, "node not found")
	})
}

// A new leader does not know earlier heartbeats, and gives each node the longest TTL that it may
// have. After that it marks silent nodes down.
func TestHeartbeats_aNewLeaderStartsAllTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, 3)
		h.register(50)
		time.Sleep(9 * time.Second)
		first := h.leader()
		_, err := h.writers[(first+1)%3].Heartbeat(t.Context(), nodeID(0))
		must.ErrorIs(t, err, httpapi.ErrNotLeader)
		must.NoError(t, h.servers[first].Shutdown())
		second := h.leader()
		must.NotEq(t, first, second)
		time.Sleep(2*heartbeat.DefaultMinTTL - time.Second) // longer than any node's TTL
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 50}, h.statuses())
		for i := range 25 {
			_, err := h.writers[second].Heartbeat(t.Context(), nodeID(i))
			must.NoError(t, err)
		}
		time.Sleep(heartbeat.DefaultGrace + 2*time.Second)
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 25, cluster.NodeDown: 25}, h.statuses())
	})
}

// A node that became ready by a write whose caller disconnected is expected to send heartbeats.
func TestHeartbeats_askersThatHangUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, 1)
		h.register(1)
		w := h.writers[0]
		time.Sleep(time.Minute)
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDown: 1}, h.statuses())
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		h.applying.Lock() // or the answer may arrive before the cancellation is noticed
		_, err := w.Heartbeat(gone, nodeID(0))
		must.ErrorIs(t, err, context.Canceled)
		_, err = w.RegisterNode(gone, &cluster.Node{ID: nodeID(1), Status: cluster.NodeReady})
		must.ErrorIs(t, err, context.Canceled)
		h.applying.Unlock()
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 2}, h.statuses())
		time.Sleep(time.Minute)
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDown: 2}, h.statuses())
	})
}

// A node that was deleted while its status down was being written, and has registered again before
// the write ends, is expected to send heartbeats. A deleted node is not.
func TestHeartbeats_deletedAndBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, 1)
		h.leader()
		beats := newHeartbeats(heartbeat.Options{}, hclog.NewNullLogger()) // which the test steps
		beats.server, beats.timers = h.servers[0], heartbeat.New(heartbeat.Options{}, rand.New(rand.NewPCG(1, 2)))
		beats.timers.Heard("n", time.Now())
		var changes []heartbeat.Change
		for range 60 {
			time.Sleep(time.Second)
			missed, _ := beats.step()
			changes = append(changes, missed...)
		}
		must.Eq(t, []heartbeat.Change{{Node: "n", Status: cluster.NodeDown}}, changes)
		beats.timers.Heard("n", time.Now())  // it has registered
		beats.write(t.Context(), changes[0]) // and was deleted before that
		must.Eq(t, 1, beats.timers.Len())

		h.register(1)
		kept := h.writers[0].heartbeats
		waited := func() int {
			kept.mu.Lock()
			defer kept.mu.Unlock()
			return kept.timers.Len()
		}
		must.Eq(t, 1, waited())
		_, err := h.writers[0].PurgeNode(t.Context(), nodeID(0))
		must.NoError(t, err)
		must.Eq(t, 0, waited())
	})
}

// A leader that cannot write goes on trying for as long as it leads.
func TestHeartbeats_stopsWithItsTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, 3)
		h.register(100)
		leader := h.leader()
		for i, s := range h.servers {
			if i != leader {
				must.NoError(t, s.Shutdown())
			}
		}
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.writers[leader].Heartbeat(ctx, nodeID(0))
		must.ErrorIs(t, err, httpapi.ErrNotLeader)
		h.writers[leader].heartbeats.mu.Lock()
		defer h.writers[leader].heartbeats.mu.Unlock()
		must.Nil(t, h.writers[leader].heartbeats.timers)
	})
}
