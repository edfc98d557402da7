package world_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// raftServer is one server with hashicorp/raft. Each entry of its log creates an evaluation.
type raftServer struct {
	*recorder
	raft      *raft.Raft
	transport *link
	proposer  *shims.Proposer
}

// link is the transport of one server. It can lose the answers of the other servers to this
// server's entries.
type link struct {
	*raft.InmemTransport
	loseAnswers atomic.Bool
}

// AppendEntries delivers the entries even if it loses the answer.
func (l *link) AppendEntries(id raft.ServerID, to raft.ServerAddress, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) error {
	err := l.InmemTransport.AppendEntries(id, to, request, response)
	if l.loseAnswers.Load() {
		return errors.New("the answer was lost")
	}
	return err
}

// AppendEntriesPipeline returns an error, so that raft uses only AppendEntries.
func (*link) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// recorder is a state machine that records the entries that it applies.
type recorder struct {
	*shims.FSM
	mu sync.Mutex
	// entries are the applied entries, in order; guarded by mu.
	entries []raftEntry
	// own are those that the server applied while it led in their term; guarded by mu.
	own   map[string]bool
	leads func() (term uint64, leads bool)
}

// raftEntry is an applied entry.
type raftEntry struct {
	index, term uint64
	name        string
}

// Apply records and applies the entry.
func (r *recorder) Apply(l *raft.Log) any {
	m, err := shims.Decode(l.Data)
	if err != nil {
		return err
	}
	term, leads := r.leads()
	r.mu.Lock()
	name := string(m.(*shims.EvalUpdate).Evals[0].ID)
	r.entries = append(r.entries, raftEntry{l.Index, l.Term, name})
	if leads && term == l.Term {
		r.own[name] = true
	}
	r.mu.Unlock()
	return r.FSM.Apply(l)
}

// applied are the entries so far.
func (r *recorder) applied() []raftEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// startRaft starts three servers. The end of the test stops them.
func startRaft(t *testing.T) []*raftServer {
	t.Helper()
	var servers []*raftServer
	var voters raft.Configuration
	for i := range 3 {
		s := &raftServer{recorder: &recorder{FSM: shims.NewFSM(shims.FSMConfig{}), own: map[string]bool{}}}
		address := raft.ServerAddress(fmt.Sprintf("s%d", i+1))
		_, memory := raft.NewInmemTransport(address)
		s.transport = &link{InmemTransport: memory}
		voters.Servers = append(voters.Servers, raft.Server{ID: raft.ServerID(address), Address: address})
		servers = append(servers, s)
	}
	connect(servers, nil)
	for i, s := range servers {
		conf := raft.DefaultConfig()
		conf.LocalID, conf.Logger, conf.BatchApplyCh = voters.Servers[i].ID, hclog.NewNullLogger(), true
		store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		must.NoError(t, raft.BootstrapCluster(conf, store, store, snapshots, s.transport, voters))
		s.leads = func() (uint64, bool) { return s.raft.CurrentTerm(), s.raft.State() == raft.Leader }
		var err error
		s.raft, err = raft.NewRaft(conf, s.recorder, store, store, snapshots, s.transport)
		must.NoError(t, err)
		s.proposer, err = shims.NewProposer(s.raft, s.FSM, shims.Options{})
		must.NoError(t, err)
		t.Cleanup(func() {
			s.proposer.Close()
			must.NoError(t, s.raft.Shutdown().Error())
		})
	}
	return servers
}

// connect connects all servers except cut. If cut is nil, it connects all.
func connect(servers []*raftServer, cut *raftServer) {
	for _, a := range servers {
		for _, b := range servers {
			if a == cut || b == cut {
				a.transport.Disconnect(b.transport.LocalAddr())
			} else if a != b {
				a.transport.Connect(b.transport.LocalAddr(), b.transport.InmemTransport)
			}
		}
	}
}

// eval returns a message that creates an evaluation with this id.
func eval(name string) *shims.EvalUpdate {
	return &shims.EvalUpdate{Evals: []*cluster.Evaluation{{
		ID: cluster.EvalID(name), Namespace: cluster.DefaultNamespace, JobID: "job", Type: cluster.JobService, Status: cluster.EvalPending,
	}}}
}
