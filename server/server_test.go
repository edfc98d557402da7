package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// await waits until the state of a server satisfies a condition.
func await(t *testing.T, s *server.Server, what string, holds func(*statestore.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reached := false
	_, err := s.Store().Blocking(ctx, 1, func(snap *statestore.Snapshot) (uint64, error) {
		if reached = holds(snap); reached {
			return 2, nil
		}
		return 1, nil
	})
	must.NoError(t, err, must.Sprint(what))
	must.True(t, reached, must.Sprint(what))
}

func newGroup(t *testing.T, c server.GroupConfig) *server.Group {
	t.Helper()
	g := result.Of(server.NewGroup(c)).OK(t)
	t.Cleanup(func() { must.NoError(t, g.Shutdown()) })
	return g
}

// do makes a request of the leader and returns the leader.
func do(t *testing.T, g *server.Group, request func(context.Context, *server.Server) error) *server.Server {
	t.Helper()
	var leader *server.Server
	must.NoError(t, g.Do(t.Context(), func(ctx context.Context, s *server.Server) error {
		leader = s
		return request(ctx, s)
	}))
	return leader
}

// write sends a request to the leader, and returns its result.
func write[A, W any](t *testing.T, g *server.Group, request func(server.Requests, context.Context, A) (W, error), argument A) (written W) {
	t.Helper()
	do(t, g, func(ctx context.Context, s *server.Server) (err error) {
		written, err = request(s.Requests(), ctx, argument)
		return err
	})
	return written
}

func stopJob(t *testing.T, g *server.Group, key cluster.JobKey, purge bool) {
	t.Helper()
	do(t, g, func(ctx context.Context, s *server.Server) error {
		_, err := s.Requests().StopJob(ctx, key, cluster.JobStop{Purge: purge})
		return err
	})
}

// testNode is a ready node with room for ten allocations of a test job.
func testNode(id cluster.NodeID) *cluster.Node {
	n := clustertest.Node(id)
	n.Resources = cluster.Resources{CPU: 1000, MemoryMB: 1000}
	return n
}

// register registers nodes n1 and up, and a job of that many allocations.
func register(t *testing.T, g *server.Group, nodes, count int) {
	t.Helper()
	for i := range nodes {
		write(t, g, server.Requests.RegisterNode, testNode(cluster.NodeID(fmt.Sprintf("n%d", i+1))))
	}
	registerJob(t, g, clustertest.Job("web", cluster.JobService, count))
}

func registerJob(t *testing.T, g *server.Group, j *cluster.Job) *server.Server {
	t.Helper()
	return do(t, g, func(ctx context.Context, s *server.Server) error {
		_, err := s.Requests().RegisterJob(ctx, j, cluster.JobRegistration{})
		return err
	})
}

var webKey = cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}

// runs reports for the clients of the web job until that many allocations run and the stopped ones
// have ended.
func runs(t *testing.T, g *server.Group, count int) {
	t.Helper()
	for {
		var reports []cluster.AllocReport
		running, counted := 0, uint64(0)
		leader := do(t, g, func(ctx context.Context, s *server.Server) error {
			state := s.Store().Snapshot()
			reports, running, counted = clustertest.Progress(state.AllocsByJob(webKey), time.Now()), 0, state.TableIndex("allocs")
			for a := range state.AllocsByJob(webKey) {
				if !a.Terminal() && a.ClientStatus == cluster.ClientRunning {
					running++
				}
			}
			if len(reports) == 0 {
				return nil
			}
			_, err := s.Requests().ReportAllocs(ctx, reports)
			return err
		})
		if running == count && len(reports) == 0 {
			return
		}
		if len(reports) == 0 {
			// Wait for an index newer than the counted state: a newer state may hold the last
			// placement already.
			await(t, leader, "placements", func(s *statestore.Snapshot) bool {
				for range s.AllocsByJob(webKey) { // for the watch
				}
				return s.TableIndex("allocs") > counted
			})
		}
	}
}

func drain(t *testing.T, g *server.Group, id cluster.NodeID, spec *cluster.DrainSpec) cluster.DrainWritten {
	t.Helper()
	key := fmt.Sprintf("%s %v", id, spec)
	return write(t, g, server.Requests.UpdateDrain, cluster.DrainUpdate{Node: id, Spec: spec, Key: key, MarkEligible: true})
}

func setStatus(t *testing.T, s *server.Server, id cluster.NodeID, status cluster.NodeStatus) {
	t.Helper()
	result.Of(s.Requests().UpdateNodeStatus(t.Context(), id, status)).OK(t)
}

// The next leader ends a drain that a dead leader began. The dead one decides nothing.
func TestGroup_aDrainOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{})
		register(t, g, 2, 4)
		runs(t, g, 4)
		id := drain(t, g, "n1", &cluster.DrainSpec{}).Drain

		first := g.Leader()
		must.NoError(t, g.Kill(first))
		must.SliceLen(t, 2, g.Servers())
		_, err := first.Drainer().Status()
		must.ErrorIs(t, err, rules.ErrNotEnabled)
		_, err = first.Requests().UpdateNodeStatus(t.Context(), "n1", cluster.NodeReady)
		must.ErrorIs(t, err, shims.ErrClosed)

		for ended := false; !ended; {
			runs(t, g, 4)
			time.Sleep(time.Millisecond) // all goroutines are idle, and the next timer gets nearer
			if next := g.Leader(); next != nil {
				must.NotEq(t, first.ID(), next.ID())
				record := next.Store().Snapshot().DrainRecord(id)
				ended = record != nil
				must.True(t, !ended || record.Outcome == cluster.OutcomeComplete)
			}
		}
	})
}

// A node that returns gets its work again: system allocations, and allocations that waited for
// capacity.
func TestServer_aNodeReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		register(t, g, 2, 15) // ten fit on a node
		runs(t, g, 15)
		logsJob := clustertest.Job("logs", cluster.JobSystem, 1)
		logsJob.TaskGroups[0].Tasks[0].Resources = cluster.Resources{} // ten others fill a node
		registerJob(t, g, logsJob)
		logs := func(s *statestore.Snapshot, on cluster.NodeID) (running int) {
			for a := range s.WorkView().LiveAllocsByNode(on) {
				if a.JobID == "logs" && a.DesiredStatus == cluster.DesiredRun {
					running++
				}
			}
			return running
		}
		s := g.Leader()
		await(t, s, "a logger on each node", func(snap *statestore.Snapshot) bool {
			return logs(snap, "n1") == 1 && logs(snap, "n2") == 1
		})

		setStatus(t, s, "n1", cluster.NodeDown)
		await(t, s, "its logger is lost", func(snap *statestore.Snapshot) bool { return logs(snap, "n1") == 0 })
		runs(t, g, 10)
		setStatus(t, s, "n1", cluster.NodeReady)
		await(t, s, "its logger is back", func(snap *statestore.Snapshot) bool { return logs(snap, "n1") == 1 })
		runs(t, g, 15)

		drain(t, g, "n1", &cluster.DrainSpec{Deadline: -1})
		await(t, s, "its logger is marked", func(snap *statestore.Snapshot) bool {
			for a := range snap.AllocsByNode("n1") {
				if a.Marked() && a.JobID == "web" {
					return true
				}
			}
			return false
		})
		drain(t, g, "n1", nil)
		must.True(t, s.Store().Snapshot().Node("n1").Ready())
		runs(t, g, 15)
	})
}

// A new node gets the system jobs that were there before it.
func TestServer_aNewNodeGetsSystemJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		s := registerJob(t, g, clustertest.Job("logs", cluster.JobSystem, 1))
		register(t, g, 1, 0)
		await(t, s, "a logger on it", func(snap *statestore.Snapshot) bool { return snap.Usage("n1").Live == 1 })
	})
}

// A snapshot that replaces the state of a leader begins a new term: the drain continues from the
// new state.
func TestServer_aSnapshotReplacesTheState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		register(t, g, 2, 4)
		runs(t, g, 4)
		s := g.Leader()
		snapshot := s.Raft().Snapshot()
		must.NoError(t, snapshot.Error())
		id := drain(t, g, "n1", &cluster.DrainSpec{}).Drain
		meta, source, err := snapshot.Open()
		must.NoError(t, err)
		before := s.Store()
		must.NoError(t, s.Raft().Restore(meta, source, time.Minute))

		must.True(t, s.Store() != before)
		synctest.Wait()
		_, err = s.Drainer().Explain("n1")
		must.ErrorIs(t, err, rules.ErrNotDraining)
		must.Nil(t, s.Store().Snapshot().DrainRecord(id))
		id = drain(t, g, "n1", &cluster.DrainSpec{Deadline: time.Hour}).Drain
		for s.Store().Snapshot().DrainRecord(id) == nil {
			runs(t, g, 4)
			time.Sleep(time.Millisecond) // as above
		}
	})
}

// Three servers reach the same state over real sockets.
func TestGroup_loopback(t *testing.T) {
	t.Parallel()
	g := newGroup(t, server.GroupConfig{Loopback: true})
	register(t, g, 3, 5)
	runs(t, g, 5)
	states := atOneIndex(t, g)
	dumps := make(map[string]bool)
	for _, state := range states {
		var dump strings.Builder
		must.NoError(t, statestore.Dump(&dump, state))
		dumps[dump.String()] = true
	}
	must.SliceLen(t, 3, states)
	must.MapLen(t, 1, dumps)
}

// atOneIndex waits until all servers have applied the same entries, and returns their states. The
// scheduler may write after any observed state.
func atOneIndex(t *testing.T, g *server.Group) (states []*statestore.Snapshot) {
	t.Helper()
	for newest, equal := uint64(0), false; !equal; {
		states, equal = nil, true
		for _, s := range g.Servers() {
			await(t, s, "what another has applied", func(state *statestore.Snapshot) bool {
				for range state.Evals() { // for the watch
				}
				for range state.Allocs() {
				}
				return state.Index() >= newest
			})
			states = append(states, s.Store().Snapshot())
			newest = max(newest, states[len(states)-1].Index())
		}
		for _, state := range states {
			equal = equal && state.Index() == newest
		}
	}
	return states
}

// Requests that make no sense are refused, and change nothing.
func TestServer_refuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		register(t, g, 1, 1)
		s := g.Leader()
		_, err := s.Requests().UpdateDrain(t.Context(), cluster.DrainUpdate{Node: "none", Spec: &cluster.DrainSpec{}})
		must.ErrorIs(t, err, statestore.ErrNodeNotFound)
		_, err = s.Requests().UpdateNodeStatus(t.Context(), "none", cluster.NodeDown)
		must.ErrorIs(t, err, statestore.ErrNodeNotFound)
		_, err = s.Requests().UpdateEligibility(t.Context(), "none", cluster.NodeIneligible)
		must.ErrorIs(t, err, statestore.ErrNodeNotFound)
		_, err = s.Requests().PurgeNode(t.Context(), "none")
		must.ErrorIs(t, err, statestore.ErrNodeNotFound)
		_, err = s.Requests().EvaluateNode(t.Context(), "none")
		must.ErrorIs(t, err, statestore.ErrNodeNotFound)
		none := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "none"}
		_, err = s.Requests().EvaluateJob(t.Context(), none)
		must.ErrorIs(t, err, statestore.ErrJobNotFound)
		for _, purge := range []bool{false, true} {
			_, err = s.Requests().StopJob(t.Context(), none, cluster.JobStop{Purge: purge})
			must.ErrorIs(t, err, statestore.ErrJobNotFound)
		}
		_, err = s.Requests().RegisterJob(t.Context(), nil, cluster.JobRegistration{})
		must.ErrorContains(t, err, "job is missing")
		_, err = s.Requests().RegisterJob(t.Context(), &cluster.Job{ID: "a"}, cluster.JobRegistration{})
		must.ErrorContains(t, err, "Missing job task groups")
		_, err = s.Requests().RegisterNode(t.Context(), nil)
		must.Error(t, err)
		_, err = s.Requests().RegisterNode(t.Context(), &cluster.Node{})
		must.Error(t, err)
	})
}

// A follower rejects writes.
func TestServer_followerRejects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{})
		register(t, g, 1, 1)
		for _, s := range g.Servers() {
			if !s.Leads() {
				_, err := s.Requests().UpdateDrain(t.Context(), cluster.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{}})
				must.ErrorIs(t, err, shims.ErrRejected)
				must.ErrorIs(t, err, raft.ErrNotLeader)
			}
		}
	})
}

// Do ends with its context, and its error holds the cause.
func TestGroup_doEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 2})
		register(t, g, 1, 1)
		must.NoError(t, g.Kill(g.Leader()))
		stop := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, stop)
		defer cancel()
		err := g.Do(ctx, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().ReportAllocs(ctx, nil)
			return err
		})
		must.ErrorIs(t, err, stop)
	})
}

// A config that cannot work is refused, with the field named, and leaves nothing
// running.
func TestNew_refuses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, want string
		config     func(*server.Config)
	}{
		{"no id", "Config.ID", func(c *server.Config) { c.ID = "" }},
		{"no transport", "Config.Transport", func(c *server.Config) { c.Transport = nil }},
		{"raft settings", "Config.Raft", func(c *server.Config) { c.Raft = &raft.Config{} }},
		{"drainer settings", "MaxInFlight", func(c *server.Config) { c.Drainer.MaxInFlight = -1 }},
		{"scheduler settings", "MaxPlanParts", func(c *server.Config) { c.Scheduler.MaxPlanParts = 1 }},
		{"voters", "bootstrapping", func(c *server.Config) { c.Voters = []raft.Server{{ID: "a"}, {ID: "a"}} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				address, transport := raft.NewInmemTransport("")
				config := server.Config{ID: "s1", Transport: transport, Voters: []raft.Server{{ID: "s1", Address: address}}}
				c.config(&config)
				_, err := server.New(config)
				must.ErrorContains(t, err, c.want)
			})
		})
	}
}
