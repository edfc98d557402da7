package agent

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// processes decide which process is the client of a node: the leader compares the ids of processes, and a
// second one is refused while the session of the first answers a ping. They are safe for concurrent use.
type processes struct {
	agent *Agent

	mu    sync.Mutex
	known *heartbeat.Processes // guarded by mu
	// deciding has a channel for each node with a contested request. It is closed after the decision;
	// guarded by mu.
	deciding map[cluster.NodeID]chan struct{}
}

func newProcesses(a *Agent) *processes {
	return &processes{agent: a, known: heartbeat.NewProcesses(), deciding: make(map[cluster.NodeID]chan struct{})}
}

const (
	// sessionInterval is the wait between two searches for a session that is not open yet.
	sessionInterval = 200 * time.Millisecond
	// refusedProcess is the answer to a second process. Operators read it in the log of the client.
	refusedProcess = "another client process is connected as this node: this data directory is a copy of that of another client, " +
		"or the secret of the node was stolen; start this client with an empty data directory"
)

// errOtherProcess refuses a process.
func errOtherProcess() error { return failure.New(http.StatusConflict, refusedProcess) }

// Admit implements [httpapi.Nodes]. Only the leader calls it. A client of an older release sends no id, and
// is not compared.
func (s *sessions) Admit(ctx context.Context, id cluster.NodeID, process string, begins bool) error {
	if process == "" {
		return nil
	}
	return s.agent.processes.admit(ctx, id, process, begins)
}

// CheckClient implements [httpapi.Nodes]. A leader that has just been elected gets the client of a node from its
// next heartbeat.
func (s *sessions) CheckClient(id cluster.NodeID, process string) error {
	p := s.agent.processes
	p.mu.Lock()
	defer p.mu.Unlock()
	if process != "" && p.known.Other(id, process) {
		return errOtherProcess()
	}
	return nil
}

// admit returns an error if another process is the client of the node.
func (p *processes) admit(ctx context.Context, id cluster.NodeID, process string, begins bool) error {
	for {
		p.mu.Lock()
		if !p.known.Claim(id, process, begins, time.Now()) {
			p.mu.Unlock()
			return nil
		}
		other := p.deciding[id]
		if other == nil {
			done := make(chan struct{})
			p.deciding[id] = done
			p.mu.Unlock()
			defer func() {
				p.mu.Lock()
				delete(p.deciding, id)
				p.mu.Unlock()
				close(done)
			}()
			return p.decide(id, process)
		}
		p.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return errUndecided(ctx)
		}
	}
}

func errUndecided(ctx context.Context) error {
	return errors.Join(httpapi.ErrUnavailable, context.Cause(ctx))
}

// decide searches for a session of another process. A client that has just begun gets the time to open one.
// The decision outlives its request: a client that retries sooner than it takes gets it later.
func (p *processes) decide(id cluster.NodeID, process string) error {
	ctx, cancel := context.WithTimeout(p.agent.life, p.admitTime())
	defer cancel()
	p.mu.Lock()
	due := p.known.SessionDue(id)
	p.mu.Unlock()
	for {
		began := time.Now()
		holder, answers := p.agent.sessions.answering(ctx, id, process)
		switch {
		case ctx.Err() != nil:
			return errUndecided(ctx)
		case answers:
			p.refuse(ctx, id, holder, process)
			return errOtherProcess()
		case !began.Before(due): // a search that began before may have missed the session
			p.mu.Lock()
			p.known.Take(id, process, time.Now())
			p.mu.Unlock()
			return nil
		}
		select {
		case <-time.After(sessionInterval):
		case <-ctx.Done():
		}
	}
}

// refuse counts, logs and records that a process was refused. A process that retries for ever is recorded
// once.
func (p *processes) refuse(ctx context.Context, id cluster.NodeID, holder, process string) {
	p.mu.Lock()
	record := p.known.Keep(id, holder, process, time.Now())
	p.mu.Unlock()
	a := p.agent
	if a.config.Metrics != nil {
		a.config.Metrics.RefusedProcess()
	}
	level := hclog.Debug
	if record {
		level = hclog.Warn
	}
	a.config.Logger.Log(level, "a second client process of a node was refused: its data directory is a copy, or the secret of the node was stolen",
		"node", id, "refused", process, "connected", holder)
	if !record || a.server.Store().Snapshot().ClusterVersion() < cluster.VersionOfConfirmation {
		return
	}
	event := cluster.NodeEvent{Message: cluster.EventProcessRefused, Subsystem: cluster.SubsystemCluster, Details: map[string]string{cluster.EventDetailProcess: process}}
	if _, err := a.server.Requests().AppendNodeEvent(ctx, id, event); err != nil {
		a.config.Logger.Warn("the event of a refused client process was not written", "node", id, "error", err)
	}
}

// applied forgets deleted nodes. It is called after each entry.
func (p *processes) applied(a shims.Applied) {
	m, is := a.Message.(*shims.NodeDeregister)
	if !is {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range m.Nodes {
		p.known.Forget(id)
	}
}

// processRequest is the request of a server whether a process may open a session of a node here. Only the
// leader answers it.
type processRequest struct {
	Node    cluster.NodeID
	Process string
}

// processAnswer is the answer to a processRequest.
type processAnswer struct{ Refused bool }

// serve answers a processRequest.
func (p *processes) serve(ctx context.Context, q processRequest) (processAnswer, error) {
	if !p.agent.peers().Leads() {
		return processAnswer{}, httpapi.ErrNotLeader
	}
	err := p.admit(ctx, q.Node, q.Process, true)
	if refused, is := errors.AsType[*failure.Failure](err); is && refused.Code == http.StatusConflict {
		return processAnswer{Refused: true}, nil
	}
	return processAnswer{}, err
}

// admitSession returns an error if a process must not open a session here. Without an answer of the leader, the
// session that this server holds decides.
func (p *processes) admitSession(ctx context.Context, id cluster.NodeID, process string) error {
	ctx, cancel := context.WithTimeout(ctx, p.admitTime())
	defer cancel()
	peers := p.agent.peers()
	if peers.Leads() {
		return p.admit(ctx, id, process, true)
	}
	if leader := peers.Leader(); leader != "" {
		answer, err := request[processAnswer](ctx, p.agent, leader, pathProcess, processRequest{Node: id, Process: process})
		switch {
		case err != nil:
			p.agent.config.Logger.Debug("the leader does not decide about a session; this server decides", "node", id, "error", err)
		case answer.Refused:
			return errOtherProcess()
		default:
			return nil
		}
	}
	if p.agent.sessions.ping(ctx, id, process).Answers {
		return errOtherProcess()
	}
	return nil
}

// admitTime bounds the decision about a session: two searches, and the time for a session that is not open
// yet.
func (p *processes) admitTime() time.Duration { return 2*p.agent.sessions.searchTime + 5*time.Second }
