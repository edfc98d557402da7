package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// joinInterval is the wait between two rounds of looking for a cluster.
const joinInterval = 250 * time.Millisecond

// membership brings a server into its cluster. It owns one goroutine until it is
// there: a server that was removed later stays out until it is started again.
type membership struct {
	agent *Agent
	// looking ends when the server leaves, or the agent stops.
	looking context.Context
	settle  context.CancelFunc

	mu sync.Mutex
	// heard maps the addresses of servers without a cluster that have asked this one to the time of
	// the last request; guarded by mu.
	heard map[string]time.Time
	// promised is the server that this one has promised to follow into a new cluster, or empty;
	// guarded by mu.
	promised string
	// cluster is the id of the cluster that the server is in or about to be, or empty;
	// guarded by mu.
	cluster string
}

func newMembership(a *Agent) *membership {
	m := &membership{agent: a}
	if a.disk != nil {
		m.cluster, m.promised = a.disk.Cluster(), a.disk.Promised()
	}
	m.looking, m.settle = context.WithCancel(a.life)
	return m
}

// run looks for a cluster until the server is in one at its present address.
func (m *membership) run() {
	defer m.settle()
	ctx := m.looking
	logger := m.agent.config.Logger
	for told := ""; !m.member(); {
		err := m.round(ctx)
		if err != nil && err.Error() != told {
			told = err.Error()
			logger.Warn("not in a cluster yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(joinInterval):
		}
	}
	logger.Info("in the cluster", "servers", len(m.agent.peers().configuration().Servers))
}

// member reports whether the cluster knows the server at its present address.
func (m *membership) member() bool {
	return slices.ContainsFunc(m.agent.peers().configuration().Servers, func(s raft.Server) bool {
		return string(s.ID) == m.agent.Name() && string(s.Address) == m.agent.ServerAddr()
	})
}

// round asks every candidate for a cluster, and begins one if there is none and enough servers are
// found.
func (m *membership) round(ctx context.Context) error {
	a := m.agent
	if a.peers().Leads() { // alone, at a new address
		return a.peers().Join(ctx, a.Name(), a.ServerAddr())
	}
	found := map[string]serverInfo{a.Name(): a.info()}
	var errs []error
	addresses := m.candidates()
	for i := 0; i < len(addresses); i++ {
		address := addresses[i]
		info, err := ask(ctx, a, address, pathServer, a.info())
		switch {
		case err != nil:
			errs = append(errs, err)
		case info.ID == a.Name():
		case info.Members > 0:
			if err := m.join(ctx, address, info); err != nil {
				errs = append(errs, err)
				continue
			}
			return nil
		default:
			found[info.ID] = info
			for _, heard := range info.Heard {
				if heard != a.ServerAddr() && !slices.Contains(addresses, heard) {
					addresses = append(addresses, heard)
				}
			}
		}
	}
	if a.config.BootstrapExpect > 1 && len(a.peers().configuration().Servers) == 0 {
		errs = append(errs, m.bootstrap(ctx, found))
	}
	return errors.Join(errs...)
}

// candidates are where a cluster may be found: at the addresses of the
// configuration, and where raft knew its peers.
func (m *membership) candidates() []string {
	var addresses []string
	add := func(address string) {
		if address != m.agent.ServerAddr() && !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	for _, s := range m.agent.peers().configuration().Servers {
		if string(s.ID) != m.agent.Name() {
			add(string(s.Address))
		}
	}
	for _, address := range m.agent.config.Join {
		add(address)
	}
	for _, address := range m.known() {
		add(address)
	}
	return addresses
}

// hearFor is how long a server that asked is remembered, hearMost how many are.
const (
	hearFor  = 20 * joinInterval
	hearMost = 100
)

// hear remembers a server without a cluster that has asked this one.
func (m *membership) hear(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.heard, func(_ string, at time.Time) bool { return now.Sub(at) > hearFor })
	if m.heard == nil {
		m.heard = make(map[string]time.Time)
	}
	if address != "" && len(m.heard) < hearMost {
		m.heard[address] = now
	}
}

// known are the remembered servers, by address.
func (m *membership) known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.heard))
}

// join asks a member of a cluster to add this server.
func (m *membership) join(ctx context.Context, address string, member serverInfo) error {
	if err := m.adopt(member); err != nil {
		return err
	}
	_, err := ask(ctx, m.agent, address, pathJoin, serverRef{ID: m.agent.Name(), Address: m.agent.ServerAddr()})
	return err
}

// bootstrap begins a new cluster of the found servers, if their number is the expected one and this
// server's name comes first. All of them first promise to begin no other: servers that find
// different sets could begin two clusters. One server begins, and the others learn of it by raft.
func (m *membership) bootstrap(ctx context.Context, found map[string]serverInfo) error {
	expect := m.agent.config.BootstrapExpect
	if len(found) < expect {
		return fmt.Errorf("found %d servers of the %d expected", len(found), expect)
	}
	if len(found) > expect {
		return fmt.Errorf("found %d servers and expected %d: stop those that are not of the cluster", len(found), expect)
	}
	p := promise{By: m.agent.Name(), Cluster: m.id()}
	if p.Cluster == "" {
		p.Cluster = uuid.NewString()
	}
	for _, info := range found {
		if info.Expect != expect {
			return fmt.Errorf("server %s expects %d servers, this one %d", info.ID, info.Expect, expect)
		}
		p.Voters = append(p.Voters, raft.Server{ID: raft.ServerID(info.ID), Address: raft.ServerAddress(info.Address)})
	}
	slices.SortFunc(p.Voters, func(a, b raft.Server) int { return cmp.Compare(a.ID, b.ID) })
	if string(p.Voters[0].ID) != p.By {
		return nil // that one begins
	}
	if err := m.promise(p); err != nil {
		return err
	}
	for _, v := range p.Voters[1:] {
		if _, err := ask(ctx, m.agent, string(v.Address), pathPromise, p); err != nil {
			return err
		}
	}
	err := m.agent.peers().change(ctx, m.agent.server.Raft().BootstrapCluster(raft.Configuration{Servers: p.Voters}))
	if err != nil {
		return fmt.Errorf("beginning a cluster: %w", err)
	}
	m.agent.config.Logger.Info("began a new cluster", "servers", len(p.Voters))
	return nil
}

// promise makes the promise, or says why not. The promise holds for good, in the data directory if
// there is one: no other server may begin a cluster with this one.
func (m *membership) promise(p promise) error {
	if err := m.commit(p); err != nil || m.agent.disk == nil {
		return err
	}
	return errors.Join(m.agent.disk.KeepPromise(p.By), m.agent.disk.KeepCluster(p.Cluster))
}

func (m *membership) commit(p promise) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case p.By == "" || !slices.ContainsFunc(p.Voters, func(v raft.Server) bool { return string(v.ID) == m.agent.Name() }):
		return errors.New("a promise for a cluster without this server")
	case m.promised != "" && m.promised != p.By:
		return fmt.Errorf("promised to server %s already; if that server never begins a cluster, delete the file promise in the data directory and start again",
			m.promised)
	case len(m.agent.peers().configuration().Servers) > 0:
		return errors.New("in a cluster already")
	}
	m.promised, m.cluster = p.By, p.Cluster
	return nil
}

// leave takes the server out of its cluster.
func (m *membership) leave(ctx context.Context) error {
	m.settle() // otherwise the server would rejoin at once
	a := m.agent
	var err error
	for m.among() {
		if a.peers().Leads() {
			// The server refuses to remove itself, once another leads.
			err = a.peers().Remove(ctx, a.Name())
		}
		if leader := a.peers().Leader(); leader != "" && !a.peers().Leads() {
			// Not found: it has left already, and the answer was lost.
			if _, err = ask(ctx, a, leader, pathRemove, serverRef{ID: a.Name()}); err == nil || errors.Is(err, httpapi.ErrNotFound) {
				a.config.Logger.Info("left the cluster")
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("leaving the cluster: %w: %w", context.Cause(ctx), err)
		case <-time.After(joinInterval):
		}
	}
	return nil
}

// among reports whether the server is in a cluster with others.
func (m *membership) among() bool {
	members := m.agent.peers().configuration().Servers
	return len(members) > 1 && slices.ContainsFunc(members, func(s raft.Server) bool { return string(s.ID) == m.agent.Name() })
}
