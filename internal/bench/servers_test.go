package main

import (
	"bytes"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// raftServers are three servers in this process. They use the loopback interface and keep their
// logs on disk, as agents do. They end with the benchmark.
type raftServers struct {
	tb  testing.TB
	all []raftServer
	// leader is set by elect.
	leader raftServer
	// applied is called for each entry that the leader applies, on raft's FSM goroutine.
	applied atomic.Pointer[func(shims.Applied)]
}

// raftServer is one server.
type raftServer struct {
	raft  *raft.Raft
	store func() *statestore.Store
}

// serverConfig is the configuration of one server.
type serverConfig struct {
	id        raft.ServerID
	transport *raft.NetworkTransport
	log       *raft.LogCache
	stable    *raftboltdb.BoltStore
	snapshots *raft.FileSnapshotStore
}

// newServerConfigs returns the configurations of three servers, and raft's list of them.
func newServerConfigs(tb testing.TB) (configs []serverConfig, voters []raft.Server) {
	for _, id := range []raft.ServerID{"s1", "s2", "s3"} {
		dir, p := tb.TempDir(), serverConfig{id: id}
		var err error
		p.stable, err = raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "log.db"), MsgpackUseNewTimeFormat: true})
		must.NoError(tb, err)
		tb.Cleanup(func() { must.NoError(tb, p.stable.Close()) })
		p.log, err = raft.NewLogCache(512, p.stable)
		must.NoError(tb, err)
		p.snapshots, err = raft.NewFileSnapshotStoreWithLogger(dir, 1, hclog.NewNullLogger())
		must.NoError(tb, err)
		p.transport, err = raft.NewTCPTransportWithLogger("127.0.0.1:0", nil, 3, 10*time.Second, hclog.NewNullLogger())
		must.NoError(tb, err)
		configs, voters = append(configs, p), append(voters, raft.Server{ID: id, Address: p.transport.LocalAddr()})
	}
	return configs, voters
}

// newServers starts servers with a drainer and a scheduler.
func newServers(tb testing.TB) *raftServers {
	r := &raftServers{tb: tb}
	configs, voters := newServerConfigs(tb)
	for _, p := range configs {
		s, err := server.New(server.Config{
			ID: p.id, Transport: p.transport, Voters: voters, Log: p.log, Stable: p.stable, Snapshots: p.snapshots,
			OnApply: func(a shims.Applied) { r.notify(p.id, a) },
		})
		must.NoError(tb, err)
		tb.Cleanup(func() { must.NoError(tb, s.Shutdown()) })
		r.all = append(r.all, raftServer{s.Raft(), s.Store})
	}
	return r.elect()
}

// newReplicas starts servers that only apply a log.
func newReplicas(tb testing.TB) *raftServers {
	r := &raftServers{tb: tb}
	configs, voters := newServerConfigs(tb)
	for _, p := range configs {
		c := raft.DefaultConfig()
		c.LocalID, c.BatchApplyCh, c.Logger = p.id, true, hclog.NewNullLogger()
		must.NoError(tb, raft.BootstrapCluster(c, p.log, p.stable, p.snapshots, p.transport, raft.Configuration{Servers: voters}))
		fsm := shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) { r.notify(p.id, a) }})
		one, err := raft.NewRaft(c, fsm, p.log, p.stable, p.snapshots, p.transport)
		must.NoError(tb, err)
		tb.Cleanup(func() {
			must.NoError(tb, one.Shutdown().Error())
			must.NoError(tb, p.transport.Close())
		})
		r.all = append(r.all, raftServer{one, fsm.Store})
	}
	return r.elect()
}

// patience is the longest wait of a benchmark. Drains of some thousand allocations on slow disks
// take longest.
const patience = 15 * time.Minute

// elect waits for a leader that has applied its whole log. A benchmark may restore a state only after
// that.
func (r *raftServers) elect() *raftServers {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for _, s := range r.all {
			if s.raft.State() == raft.Leader && s.raft.Barrier(patience).Error() == nil {
				r.leader = s
				return r
			}
		}
	}
	r.tb.Fatalf("no leader after %s", patience)
	return nil
}

// notify calls applied if the server is the leader.
func (r *raftServers) notify(id raft.ServerID, a shims.Applied) {
	notify := r.applied.Load()
	if notify == nil {
		return
	}
	if _, leader := r.leader.raft.LeaderWithID(); leader == id {
		(*notify)(a)
	}
}

// onApply sets the function that is called for each entry that the leader applies.
func (r *raftServers) onApply(f func(shims.Applied)) { r.applied.Store(&f) }

// restore replaces the state of the servers. The index must be higher than all indexes of the log.
// Later entries have higher indexes.
func (r *raftServers) restore(state []byte, index uint64) {
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: index, Size: int64(len(state))}
	must.NoError(r.tb, r.leader.raft.Restore(meta, bytes.NewReader(state), patience))
}

// propose writes to the log and does not wait for the outcome.
func (r *raftServers) propose(m shims.Message) raft.ApplyFuture {
	data, err := shims.Encode(m)
	if err != nil {
		r.tb.Error(err)
	}
	return r.leader.raft.Apply(data, 0)
}

// instantClients report the new states of allocations as soon as a plan is applied.
type instantClients struct {
	plans chan shims.Applied
	done  chan struct{}
}

// newInstantClients starts clients that propose their reports. The caller calls onApply for each
// entry, and close at the end.
func newInstantClients(propose func(shims.Message)) *instantClients {
	c := &instantClients{plans: make(chan shims.Applied, 1<<16), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for a := range c.plans {
			if reports := reportsOf(a.Response.(shims.PlanApplied).Accepted, a.After, time.Now()); len(reports) > 0 {
				propose(&shims.AllocClientUpdate{Reports: reports})
			}
		}
	}()
	return c
}

// onApply passes an applied entry to the clients.
func (c *instantClients) onApply(a shims.Applied) {
	if _, is := a.Response.(shims.PlanApplied); is {
		c.plans <- a
	}
}

func (c *instantClients) close() {
	close(c.plans)
	<-c.done
}

// reportsOf returns the clients' reports after a plan: stopped allocations are complete, placed
// allocations run and are healthy.
func reportsOf(plan *cluster.Plan, state *statestore.Snapshot, now time.Time) []cluster.AllocReport {
	healthy := true
	var reports []cluster.AllocReport
	for _, s := range plan.Stops {
		reports = append(reports, cluster.AllocReport{Alloc: s.Alloc, Node: state.Alloc(s.Alloc).NodeID, ClientStatus: cluster.ClientComplete, At: now})
	}
	for _, a := range plan.Places {
		reports = append(reports, cluster.AllocReport{
			Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, Healthy: &healthy, HealthyAt: now, At: now,
		})
	}
	return reports
}
