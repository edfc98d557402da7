package shims_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// raftServers are servers with hashicorp/raft in memory. They live in a bubble
// of testing/synctest.
type raftServers []*raftServer

type raftServer struct {
	raft      *raft.Raft
	transport *raft.InmemTransport
	link      *link
	snapshots *raft.InmemSnapshotStore
	fsm       *shims.FSM
	proposer  *shims.Proposer

	mu sync.Mutex
	// applied are the names of the applied evaluations by raft index.
	applied map[uint64]string
	// restored are the stores made from snapshots, in order.
	restored []*statestore.Store
}

// startServers starts n servers, closed when the test ends, and waits for a
// leader.
func startServers(t testing.TB, n int) raftServers {
	t.Helper()
	var servers raftServers
	var config raft.Configuration
	for i := range n {
		s := &raftServer{applied: make(map[uint64]string), snapshots: raft.NewInmemSnapshotStore()}
		s.fsm = shims.NewFSM(shims.FSMConfig{OnApply: s.note, OnRestore: s.noteRestore})
		address := raft.ServerAddress(fmt.Sprintf("server-%d", i))
		_, s.transport = raft.NewInmemTransport(address)
		s.link = &link{InmemTransport: s.transport}
		config.Servers = append(config.Servers, raft.Server{ID: raft.ServerID(address), Address: address})
		servers = append(servers, s)
	}
	servers.connect(servers...)
	for i, s := range servers {
		conf := raft.DefaultConfig()
		conf.LocalID = config.Servers[i].ID
		conf.Logger = hclog.NewNullLogger()
		conf.TrailingLogs = 0
		conf.HeartbeatTimeout, conf.ElectionTimeout = 200*time.Millisecond, 200*time.Millisecond
		conf.LeaderLeaseTimeout, conf.CommitTimeout = 100*time.Millisecond, 10*time.Millisecond
		logs := raft.NewInmemStore()
		must.NoError(t, raft.BootstrapCluster(conf, logs, logs, s.snapshots, s.transport, config))
		var err error
		s.raft, err = raft.NewRaft(conf, s.fsm, logs, logs, s.snapshots, s.link)
		must.NoError(t, err)
		s.proposer = newProposer(t, s.raft, s.fsm, shims.Options{})
		t.Cleanup(func() { must.NoError(t, s.raft.Shutdown().Error()) })
	}
	servers.leader(t)
	return servers
}

// link is a server's transport that can lose the answers of other servers.
type link struct {
	*raft.InmemTransport
	losing atomic.Bool
}

// AppendEntries delivers the entries, even if it loses the answer.
func (l *link) AppendEntries(id raft.ServerID, to raft.ServerAddress, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) error {
	err := l.InmemTransport.AppendEntries(id, to, request, response)
	if l.losing.Load() {
		return errors.New("the answer was lost")
	}
	return err
}

// AppendEntriesPipeline makes raft use AppendEntries only.
func (l *link) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func (s *raftServer) note(a shims.Applied) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied[a.Index] = string(a.Message.(*shims.EvalUpdate).Evals[0].ID)
}

func (s *raftServer) noteRestore(store *statestore.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restored = append(s.restored, store)
}

// entries returns the names that the server has applied, by raft index.
func (s *raftServer) entries() map[uint64]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := make(map[uint64]string, len(s.applied))
	for index, name := range s.applied {
		entries[index] = name
	}
	return entries
}

func (s *raftServer) dump(t testing.TB) string { return dump(t, s.fsm) }

// connect connects these servers with all servers, in both directions.
func (all raftServers) connect(some ...*raftServer) { all.each(some, (*raft.InmemTransport).Connect) }

// disconnect disconnects these servers from all others, in both directions.
func (all raftServers) disconnect(some ...*raftServer) {
	all.each(some, func(from *raft.InmemTransport, to raft.ServerAddress, _ raft.Transport) { from.Disconnect(to) })
}

func (all raftServers) each(some []*raftServer, join func(from *raft.InmemTransport, to raft.ServerAddress, t raft.Transport)) {
	for _, a := range some {
		for _, b := range all {
			if a != b {
				join(a.transport, b.transport.LocalAddr(), b.transport)
				join(b.transport, a.transport.LocalAddr(), a.transport)
			}
		}
	}
}

// leader waits for a server that leads and that a quorum of all follows.
func (all raftServers) leader(t testing.TB) *raftServer {
	t.Helper()
	for range 1000 {
		for _, s := range all {
			if s.raft.State() == raft.Leader && s.raft.VerifyLeader().Error() == nil {
				return s
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no leader in 10 s")
	return nil
}

// settle waits until every server has applied the leader's committed entries.
func (all raftServers) settle(t testing.TB) {
	t.Helper()
	must.NoError(t, all.leader(t).raft.Barrier(0).Error())
	time.Sleep(time.Second) // heartbeats carry the commit index to the others
	synctest.Wait()
}

// eval is a message that writes an evaluation with the name.
func eval(name string) *shims.EvalUpdate {
	return &shims.EvalUpdate{Evals: []*cluster.Evaluation{{
		ID: cluster.EvalID(name), Namespace: "default", JobID: "job", Type: cluster.JobService, Status: cluster.EvalPending,
	}}}
}
