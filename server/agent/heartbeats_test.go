package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// memoryServers are servers in memory with heartbeat timers.
type memoryServers struct {
	t       *testing.T
	servers []*server.Server
	writers []writer
	// applying delays the answers of entries while a test fills it. It has capacity 1: a mutex would
	// stop the time of synctest.
	applying chan struct{}
	// down are the nodes that became down, in the order of the log of the first server.
	down []cluster.NodeID
}

func newMemoryServers(t *testing.T, n int) *memoryServers {
	h := &memoryServers{t: t, applying: make(chan struct{}, 1)}
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
		s := result.Of(server.New(server.Config{ID: voters[i].ID, Transport: from, Voters: voters, WhileLeading: beats.lead, OnApply: func(a shims.Applied) {
			h.applying <- struct{}{}
			defer func() { <-h.applying }()
			if m, is := a.Message.(*shims.NodeUpdateStatus); is && i == 0 && m.Status == cluster.NodeDown {
				h.down = append(h.down, m.Node)
			}
			beats.applied(a)
		}})).OK(t)
		beats.server = s
		close(beats.ready)
		h.servers, h.writers = append(h.servers, s), append(h.writers, writer{Requests: s.Requests(), server: s, heartbeats: beats})
		t.Cleanup(func() { must.NoError(t, s.Shutdown()) })
	}
	return h
}

// leader waits for a leader and returns its index.
func (h *memoryServers) leader() int {
	for {
		for i, s := range h.servers {
			if s.Consistent(h.t.Context()) == nil {
				return i
			}
		}
		time.Sleep(10 * time.Millisecond) // in the time of synctest
	}
}

func (h *memoryServers) register(n int) {
	w := h.writers[h.leader()]
	for i := range n {
		result.Of(w.RegisterNode(h.t.Context(), &cluster.Node{ID: nodeID(i), Status: cluster.NodeReady})).OK(h.t)
	}
}

func nodeID(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%d", i)) }

// statuses counts the nodes by status in the leader's state.
func (h *memoryServers) statuses() map[cluster.NodeStatus]int {
	counts := make(map[cluster.NodeStatus]int)
	for n := range h.servers[h.leader()].Store().Snapshot().Nodes() {
		counts[n.Status]++
	}
	return counts
}

// Nodes without heartbeats become down, and ready with the next heartbeat.
func TestHeartbeats_missedAndReceivedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 1)
		h.register(3)
		w := h.writers[0]
		for range 10 {
			time.Sleep(5 * time.Second)
			result.Of(w.Heartbeat(t.Context(), nodeID(0))).OK(t)
		}
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 1, cluster.NodeDown: 2}, h.statuses())
		before := w.server.Store().Snapshot().Index()
		result.Of(w.Heartbeat(t.Context(), nodeID(0))).OK(t)
		must.Eq(t, before, w.server.Store().Snapshot().Index()) // a heartbeat of a ready node writes nothing
		ttl := result.Of(w.Heartbeat(t.Context(), nodeID(1))).OK(t)
		must.Between(t, heartbeat.DefaultMinTTL, ttl, 2*heartbeat.DefaultMinTTL)
		must.Eq(t, cluster.NodeReady, w.server.Store().Snapshot().Node(nodeID(1)).Status)
		result.Of(w.PurgeNode(t.Context(), nodeID(2))).OK(t)
		_, err := w.Heartbeat(t.Context(), nodeID(2))
		must.ErrorIs(t, err, httpapi.ErrNotFound)
		must.EqError(t, err, "node not found")
	})
}

// raise raises the cluster version to v.
func (h *memoryServers) raise(v cluster.Version) {
	for next := cluster.MinVersion + 1; next <= v; next++ {
		result.Of(h.writers[h.leader()].RaiseVersion(h.t.Context(), next)).OK(h.t)
	}
}

// runAwaited registers a job whose allocations are awaited, and reports that they run.
func (h *memoryServers) runAwaited(name string, count int, lostAfter time.Duration) {
	ctx, w := h.t.Context(), h.writers[h.leader()]
	_, err := w.RegisterJob(ctx, &cluster.Job{ID: cluster.JobID(name), Namespace: "default", Type: cluster.JobService, Priority: 50, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: count, Disconnect: cluster.DisconnectStrategy{LostAfter: lostAfter}, Tasks: []*cluster.Task{{Name: "t"}},
	}}}, cluster.JobRegistration{})
	must.NoError(h.t, err)
	time.Sleep(time.Second)
	synctest.Wait()
	var reports []cluster.AllocReport
	for a := range w.server.Store().Snapshot().Allocs() {
		reports = append(reports, cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, At: time.Now()})
	}
	_, err = w.ReportAllocs(ctx, reports)
	must.NoError(h.t, err)
}

// Bug: no server wrote the status disconnected, so LostAfter had no effect. Now a silent node with an
// awaited allocation is disconnected, becomes down when the time is over, also under a new leader, and
// its loss of contact stays the first one.
func TestHeartbeats_disconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 3)
		first := h.leader()
		h.raise(cluster.MaxVersion)
		h.register(2)
		h.runAwaited("web", 2, 5*time.Minute)
		node := func() *cluster.Node { return h.servers[h.leader()].Store().Snapshot().Node(nodeID(0)) }
		time.Sleep(time.Minute)
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDisconnected: 2}, h.statuses())
		since := node().AwaySince
		must.False(t, since.IsZero())

		result.Of(h.writers[first].Heartbeat(t.Context(), nodeID(1))).OK(t)
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDisconnected: 1, cluster.NodeReady: 1}, h.statuses())
		must.NoError(t, h.servers[first].Shutdown())
		second := h.leader()
		for until := since.Add(5 * time.Minute); time.Now().Before(until.Add(-5 * time.Second)); time.Sleep(5 * time.Second) {
			result.Of(h.writers[second].Heartbeat(t.Context(), nodeID(1))).OK(t)
			must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDisconnected: 1, cluster.NodeReady: 1}, h.statuses())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		must.Eq(t, cluster.NodeDown, node().Status)
		must.Eq(t, since, node().AwaySince)
	})
}

// A disconnected node becomes down when nothing on it is awaited any more.
func TestHeartbeats_nothingAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 1)
		h.leader()
		h.raise(cluster.MaxVersion)
		h.register(1)
		h.runAwaited("web", 1, time.Hour)
		time.Sleep(time.Minute)
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDisconnected: 1}, h.statuses())
		_, err := h.writers[0].StopJob(t.Context(), cluster.JobKey{Namespace: "default", ID: "web"}, cluster.JobStop{})
		must.NoError(t, err)
		time.Sleep(2 * awaitInterval)
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDown: 1}, h.statuses())
	})
}

// Below the cluster version of confirmations a silent node is down.
func TestHeartbeats_olderVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 1)
		h.leader()
		h.raise(cluster.VersionOfConfirmation - 1)
		h.register(1)
		h.runAwaited("web", 1, time.Hour)
		time.Sleep(time.Minute)
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDown: 1}, h.statuses())
	})
}

// A new leader has no record of earlier heartbeats, so it waits for the longest TTL that a node may have.
// Then it marks silent nodes down.
func TestHeartbeats_aNewLeaderStartsAllTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 3)
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
			result.Of(h.writers[second].Heartbeat(t.Context(), nodeID(i))).OK(t)
		}
		time.Sleep(heartbeat.DefaultGrace + 2*time.Second)
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 25, cluster.NodeDown: 25}, h.statuses())
	})
}

// A node gets a timer when a write makes it ready, even if the caller of the write has disconnected.
func TestHeartbeats_callersThatDisconnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 1)
		h.register(1)
		w := h.writers[0]
		time.Sleep(time.Minute)
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDown: 1}, h.statuses())
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		h.applying <- struct{}{} // otherwise the answer may arrive before the cancellation
		_, err := w.Heartbeat(cancelled, nodeID(0))
		must.ErrorIs(t, err, context.Canceled)
		_, err = w.RegisterNode(cancelled, &cluster.Node{ID: nodeID(1), Status: cluster.NodeReady})
		must.ErrorIs(t, err, context.Canceled)
		<-h.applying
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 2}, h.statuses())
		time.Sleep(time.Minute)
		synctest.Wait()
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeDown: 2}, h.statuses())
	})
}

// Writes may take longer than a node's TTL. A node whose requests wait for them, and fail in the
// end, is alive: it is not marked down. A silent node is.
func TestHeartbeats_requestsThatWaitForAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 1)
		h.register(3)
		w := h.writers[0]
		time.Sleep(5 * time.Second)
		result.Of(w.UpdateNodeStatus(t.Context(), nodeID(1), cluster.NodeDisconnected)).OK(t)
		h.applying <- struct{}{}
		ended, done := make(chan struct{}), make(chan struct{})
		repeat := func(request func(context.Context) error) {
			for alive := true; alive; time.Sleep(time.Second) {
				select {
				case <-ended:
					alive = false
				default:
				}
				_ = request(t.Context()) // its outcome is unknown while no entry is applied
			}
			done <- struct{}{}
		}
		go repeat(func(ctx context.Context) error {
			_, err := w.RegisterNode(ctx, &cluster.Node{ID: nodeID(0), Status: cluster.NodeReady})
			return err
		})
		go repeat(func(ctx context.Context) error {
			_, err := w.Heartbeat(ctx, nodeID(1))
			return err
		})
		time.Sleep(2 * time.Minute)
		<-h.applying
		close(ended)
		<-done
		<-done
		time.Sleep(heartbeat.DefaultMinTTL)
		synctest.Wait()
		must.Eq(t, []cluster.NodeID{nodeID(2)}, slices.Compact(h.down))
		must.Eq(t, map[cluster.NodeStatus]int{cluster.NodeReady: 2, cluster.NodeDown: 1}, h.statuses())
	})
}

// A node keeps its timer if it is deleted during the write of its status down, and registers again
// before the write ends. A deleted node has no timer.
func TestHeartbeats_deletedAndRegisteredAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 1)
		h.leader()
		beats := newHeartbeats(heartbeat.Options{}, hclog.NewNullLogger()) // the test steps its timers
		beats.server, beats.timers = h.servers[0], heartbeat.New(heartbeat.Options{}, rand.New(rand.NewPCG(1, 2)))
		beats.timers.Heartbeat("n", time.Now())
		var changes []heartbeat.Change
		for range 60 {
			time.Sleep(time.Second)
			missed, _ := beats.step()
			changes = append(changes, missed...)
		}
		must.Eq(t, []heartbeat.Change{{Node: "n", Status: cluster.NodeDown}}, changes)
		beats.timers.Heartbeat("n", time.Now()) // the node has registered again
		beats.write(t.Context(), changes[0])    // the write finds no node
		must.Eq(t, 1, beats.timers.Len())

		beats.timers = heartbeat.New(heartbeat.Options{}, rand.New(rand.NewPCG(1, 2)))
		beats.timers.Heartbeat("m", time.Now())
		time.Sleep(heartbeat.MaxPause) // a longer time would be a pause of the process
		for missed := []heartbeat.Change(nil); missed == nil; time.Sleep(time.Second) {
			if missed, _ = beats.step(); missed != nil {
				beats.write(t.Context(), missed[0])
			}
		}
		must.Eq(t, 0, beats.timers.Len(), must.Sprint("a write that finds no node is not repeated"))

		h.register(1)
		leading := h.writers[0].heartbeats
		timers := func() int {
			leading.mu.Lock()
			defer leading.mu.Unlock()
			return leading.timers.Len()
		}
		must.Eq(t, 1, timers())
		result.Of(h.writers[0].PurgeNode(t.Context(), nodeID(0))).OK(t)
		must.Eq(t, 0, timers())
	})
}

// A leader without a majority retries its writes until its term ends. Then it has no timers.
func TestHeartbeats_endWithTheTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newMemoryServers(t, 3)
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
