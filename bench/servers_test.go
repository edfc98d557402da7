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
	// leads is the leader: see elect.
	leads raftServer
	// applied gets each entry that the leader applies, on raft's goroutine of the FSM.
	applied atomic.Pointer[func(shims.Applied)]
}

// raftServer is one server.
type raftServer struct {
	raft  *raft.Raft
	store func() *statestore.Store
}

// place is the configuration of one server.
type place struct {
	id        raft.ServerID
	transport *raft.NetworkTransport
	log       *raft.LogCache
	stable    *raftboltdb.BoltStore
	snapshots *raft.FileSnapshotStore
}

// newPlaces returns three places and the list of servers that each gets.
func newPlaces(tb testing.TB) (places []place, voters []raft.Server) {
	for _, id := range []raft.ServerID{"s1", "s2", "s3"} {
		dir, p := tb.TempDir(), place{id: id}
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
		places, voters = append(places, p), append(voters, raft.Server{ID: id, Address: p.transport.LocalAddr()})
	}
	return places, voters
}

// newServers starts servers with drainer and scheduler.
func newServers(tb testing.TB) *raftServers {
	r := &raftServers{tb: tb}
	places, voters := newPlaces(tb)
	for _, p := range places {
		s, err := server.New(server.Config{
			ID: p.id, Transport: p.transport, Voters: voters, Log: p.log, Stable: p.stable, Snapshots: p.snapshots,
			OnApply: func(a shims.Applied) { r.tell(p.id, a) },
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
	places, voters := newPlaces(tb)
	for _, p := range places {
		c := raft.DefaultConfig()
		c.LocalID, c.BatchApplyCh, c.Logger = p.id, true, hclog.NewNullLogger()
		must.NoError(tb, raft.BootstrapCluster(c, p.log, p.stable, p.snapshots, p.transport, raft.Configuration{Servers: voters}))
		fsm := shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) { r.tell(p.id, a) }})
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

// elect waits for a leader that has applied its whole log. Only then may a benchmark restore a
// state.
func (r *raftServers) elect() *raftServers {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for _, s := range r.all {
			if s.raft.State() == raft.Leader && s.raft.Barrier(patience).Error() == nil {
				r.leads = s
				return r
			}
		}
	}
	r.tb.Fatalf("no leader after %s", patience)
	return nil
}

// tell calls applied if the server is the leader.
func (r *raftServers) tell(id raft.ServerID, a shims.Applied) {
	told := r.applied.Load()
	if told == nil {
		return
	}
	if _, leader := r.leads.raft.LeaderWithID(); leader == id {
		(*told)(a)
	}
}

// onApply sets the function that gets each entry that the leader applies.
func (r *raftServers) onApply(f func(shims.Applied)) { r.applied.Store(&f) }

// restore gives the servers a state, as from a backup. The next entry has a higher index than the
// argument, which is higher than all indexes before.
func (r *raftServers) restore(state []byte, index uint64) {
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: index, Size: int64(len(state))}
	must.NoError(r.tb, r.leads.raft.Restore(meta, bytes.NewReader(state), patience))
}

// propose writes to the log and does not wait for the outcome.
func (r *raftServers) propose(m shims.Message) raft.ApplyFuture {
	data, err := shims.Encode(m)
	if err != nil {
		r.tb.Error(err)
	}
	return r.leads.raft.Apply(data, 0)
}

// instantClients report the new states of allocations as soon as a plan is applied.
type instantClients struct {
	plans chan shims.Applied
	done  chan struct{}
}

// newInstantClients starts clients that propose their reports. The caller tells them each entry and
// closes them.
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

// tell tells the clients an entry.
func (c *instantClients) tell(a shims.Applied) {
	if _, is := a.Response.(shims.PlanApplied); is {
		c.plans <- a
	}
}

func (c *instantClients) close() {
	close(c.plans)
	<-c.done
}

// reportsOf returns the reports after a plan: stopped allocations have ended, placed ones run and
// are healthy.
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
