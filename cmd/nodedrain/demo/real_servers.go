package demo

import (
	"context"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

const (
	// realTTL is the time between two heartbeats. No server of the demonstration waits for them.
	realTTL = time.Minute
	// realLook is the time between two looks of a client at the state.
	realLook = 50 * time.Millisecond
)

// realServers are the servers of this process as one real client sees them. They have no HTTP API.
type realServers struct {
	group *server.Group
	state func() *statestore.Snapshot

	mu sync.Mutex
	id cluster.NodeID // of the node, or empty before it is registered; guarded by mu
}

var _ node.Servers = (*realServers)(nil)

// Register implements [node.Servers].
func (s *realServers) Register(ctx context.Context, n *cluster.Node) (time.Duration, error) {
	err := s.group.Do(ctx, func(ctx context.Context, leader *server.Server) error {
		_, err := leader.Requests().RegisterNode(ctx, n)
		return err
	})
	if err == nil {
		s.mu.Lock()
		s.id = n.ID
		s.mu.Unlock()
	}
	return realTTL, err
}

// Heartbeat implements [node.Servers].
func (*realServers) Heartbeat(context.Context) (time.Duration, error) { return realTTL, nil }

// Changes implements [node.Servers]. Each answer has all allocations of the node that have not ended.
func (s *realServers) Changes(ctx context.Context, _ string, index uint64) (client.Wanted, error) {
	for {
		s.mu.Lock()
		id := s.id
		s.mu.Unlock()
		state := s.state()
		if w, changed := changes(state, id); changed > index || index == 0 && id != "" && state.Index() > 0 {
			return w, nil
		}
		if err := sleep(ctx, realLook); err != nil {
			return client.Wanted{}, err
		}
	}
}

// changes returns what a node has to know of a state, and the index of the servers' last change of it.
func changes(s *statestore.Snapshot, id cluster.NodeID) (w client.Wanted, changed uint64) {
	w = client.Wanted{ClusterID: "demo", Index: s.Index(), Complete: true}
	for a := range s.AllocsByNode(id) {
		changed = max(changed, a.AllocModifyIndex)
		if !a.ClientTerminal() {
			w.Allocs = append(w.Allocs, a.Copy())
			w.Known = append(w.Known, a.ID)
		}
	}
	return w, changed
}

// Report implements [node.Servers].
func (s *realServers) Report(ctx context.Context, reports []cluster.AllocReport) error {
	return s.group.Do(ctx, func(ctx context.Context, leader *server.Server) error {
		_, err := leader.Requests().ReportAllocs(ctx, reports)
		return err
	})
}

// AcceptAnonymous implements [node.Servers]: no other process reaches the servers.
func (*realServers) AcceptAnonymous(context.Context) (bool, error) { return false, nil }

// OpenSession implements [node.Servers]: no API requests data of tasks.
func (*realServers) OpenSession(ctx context.Context) (*session.NodeEnd, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
