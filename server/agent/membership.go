package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// joinInterval is the wait between two rounds of requests to find or leave a cluster.
const joinInterval = 250 * time.Millisecond

// membership adds the server to its cluster, and detects that another server has removed it. It owns one
// goroutine until the agent stops. A server that is removed later stays out of the cluster until it is
// started again.
type membership struct {
	agent *Agent
	// search ends when the server leaves, or the agent stops.
	search     context.Context
	stopSearch context.CancelFunc

	mu sync.Mutex
	// searching maps the addresses of servers without a cluster that have sent requests to this one to the
	// time of the last request; guarded by mu.
	searching map[string]time.Time
	// promised is the name of the server whose new cluster this one has promised to join, or empty;
	// guarded by mu.
	promised string
	// cluster is the id of the cluster that the server is in or joins, or empty; guarded by mu.
	cluster string
	// leaves reports whether the server itself leaves its cluster; guarded by mu.
	leaves bool
	// removedAt is when this server read that another one has removed it from its cluster, or zero; guarded by
	// mu.
	removedAt time.Time
}

func newMembership(a *Agent) *membership {
	m := &membership{agent: a}
	if a.disk != nil {
		m.cluster, m.promised = a.disk.Cluster(), a.disk.Promised()
	}
	m.search, m.stopSearch = context.WithCancel(a.life)
	return m
}

// run searches for a cluster until the server is in one at its present address. Then it watches whether
// the server is removed.
func (m *membership) run() {
	m.searchCluster(m.search)
	m.stopSearch()
	m.watchRemoval(m.agent.life)
}

func (m *membership) searchCluster(ctx context.Context) {
	logger := m.agent.config.Logger
	for logged := ""; !m.member(); {
		err := m.round(ctx)
		if err != nil && err.Error() != logged {
			logged = err.Error()
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

// member reports whether raft's configuration has the server at its present address.
func (m *membership) member() bool {
	return slices.ContainsFunc(m.agent.peers().configuration().Servers, func(s raft.Server) bool {
		return string(s.ID) == m.agent.Name() && string(s.Address) == m.agent.ServerAddr()
	})
}

// notifyRemoved notifies a server of its removal: raft sends it no more entries, perhaps not even the one
// that removed it. A server that does not answer now is not notified.
func (m *membership) notifyRemoved(removed raft.Server) {
	a := m.agent
	_, err := requestInfo(a.life, a, string(removed.Address), pathRemoved, serverRef{ID: string(removed.ID)})
	if err != nil {
		a.config.Logger.Info("a removed server was not notified of its removal", "server", removed.ID, "error", err)
	}
}

// removed handles the notification that another server has removed this one from its cluster.
func (m *membership) removed(name string) error {
	if name != m.agent.Name() {
		return failure.Newf(http.StatusConflict, "this server is %s", m.agent.Name())
	}
	m.setRemoved("Stop it. If it starts again with its data, it may join again. If it must not return, delete its data directory")
	return nil
}

// setRemoved records that another server has removed this one, and logs it once with the remedy, unless
// this server leaves.
func (m *membership) setRemoved(remedy string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leaves || !m.removedAt.IsZero() {
		return
	}
	m.removedAt = time.Now()
	m.agent.config.Logger.Error("this server was removed from its cluster: it gets no more entries, and has no leader. " + remedy)
}

// isRemoved reports whether another server has removed this one, and no leader has added it since: the last
// messages of the leader to a removed server may arrive after its removal.
func (m *membership) isRemoved() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	contact := m.agent.server.Raft().LastContact()
	return !m.removedAt.IsZero() && contact.Before(m.removedAt.Add(watchInterval))
}

// watchInterval is how long a server has no leader until it looks for its removal, and the wait until it does
// so again. An election takes less.
const watchInterval = 8 * joinInterval

// watchRemoval reads, while this server has no leader, whether the leader of its cluster has removed it. The
// configuration of a server that was down at its removal still has the server, and raft sends it nothing.
func (m *membership) watchRemoval(ctx context.Context) {
	for led := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchInterval):
		}
		leads := m.agent.peers().Leader() != ""
		if !led && !leads && !m.isRemoved() && m.leaderLacks(ctx) {
			m.setRemoved("Its own log does not have the removal, because it was down. Stop it and delete its data directory. " +
				"To return, it must start with an empty data directory, under a new name and at a new address")
		}
		led = leads
	}
}

// leaderLacks reports whether a server that leads this server's cluster does not have this server among its
// servers. It sends a request to each server of raft's configuration, and to the leaders that they name.
func (m *membership) leaderLacks(ctx context.Context) bool {
	var addresses []string
	for _, s := range m.agent.peers().configuration().Servers {
		addresses = append(addresses, string(s.Address))
	}
	for i := 0; i < len(addresses); i++ {
		if addresses[i] == m.agent.ServerAddr() {
			continue
		}
		// The request has only the name: a server without a cluster must not adopt this one's cluster.
		limited, cancel := context.WithTimeout(ctx, surveyTimeout)
		info, err := request[serverInfo](limited, m.agent, addresses[i], pathServer, serverInfo{ID: m.agent.Name()})
		cancel()
		switch {
		case err != nil || info.Cluster == "" || info.Cluster != m.id():
		case info.Leader == info.Address && !slices.Contains(info.Servers, m.agent.Name()):
			return true
		case info.Leader != "" && !slices.Contains(addresses, info.Leader):
			addresses = append(addresses, info.Leader)
		}
	}
	return false
}

// round requests the cluster of every candidate, and joins the first one. If no candidate has one, and
// enough servers are found, it bootstraps a cluster.
func (m *membership) round(ctx context.Context) error {
	a := m.agent
	if a.peers().Leads() { // the only server of a cluster, at a new address
		return a.peers().Join(ctx, a.Name(), a.ServerAddr())
	}
	found := map[string]serverInfo{a.Name(): a.info()}
	var errs []error
	addresses := m.candidates()
	for i := 0; i < len(addresses); i++ {
		address := addresses[i]
		info, err := requestInfo(ctx, a, address, pathServer, a.info())
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
			for _, other := range info.Searching {
				if other != a.ServerAddr() && !slices.Contains(addresses, other) {
					addresses = append(addresses, other)
				}
			}
		}
	}
	if a.config.BootstrapExpect > 1 && len(a.peers().configuration().Servers) == 0 {
		errs = append(errs, m.bootstrap(ctx, found))
	}
	return errors.Join(errs...)
}

// candidates returns the addresses of servers that may have a cluster: those in raft's configuration,
// those in [Config].Join, and servers that search too.
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
	for _, address := range m.searchingServers() {
		add(address)
	}
	return addresses
}

// searchingFor is the time after which a searching server is removed, maxSearching is the largest number that
// is stored.
const (
	searchingFor = 20 * joinInterval
	maxSearching = 100
)

// recordSearching stores a server without a cluster that has sent a request to this one.
func (m *membership) recordSearching(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.searching, func(_ string, at time.Time) bool { return now.Sub(at) > searchingFor })
	if m.searching == nil {
		m.searching = make(map[string]time.Time)
	}
	if address != "" && len(m.searching) < maxSearching {
		m.searching[address] = now
	}
}

// searchingServers returns the addresses of the stored servers, sorted.
func (m *membership) searchingServers() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.searching))
}

// join requests that a member of a cluster adds this server.
func (m *membership) join(ctx context.Context, address string, member serverInfo) error {
	if err := m.adopt(member); err != nil {
		return err
	}
	_, err := requestInfo(ctx, m.agent, address, pathJoin, serverRef{ID: m.agent.Name(), Address: m.agent.ServerAddr()})
	return err
}

// bootstrap bootstraps a new cluster of the found servers, if their number is the expected one and
// this server's name comes first. All of them first promise to join no other new cluster: servers
// that find different sets could otherwise bootstrap two clusters. The others get the new cluster's
// configuration by raft.
func (m *membership) bootstrap(ctx context.Context, found map[string]serverInfo) error {
	expect := m.agent.config.BootstrapExpect
	if len(found) < expect {
		return fmt.Errorf("found %d servers of the %d expected", len(found), expect)
	}
	if len(found) > expect {
		return fmt.Errorf("found %d servers and expected %d: stop those that do not belong to the cluster", len(found), expect)
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
		return nil // the first server bootstraps the cluster
	}
	if err := m.promise(p); err != nil {
		return err
	}
	for _, v := range p.Voters[1:] {
		if _, err := requestInfo(ctx, m.agent, string(v.Address), pathPromise, p); err != nil {
			return err
		}
	}
	err := m.agent.peers().await(ctx, m.agent.server.Raft().BootstrapCluster(raft.Configuration{Servers: p.Voters}))
	if err != nil {
		return fmt.Errorf("bootstrapping a cluster: %w", err)
	}
	m.agent.config.Logger.Info("bootstrapped a new cluster", "servers", len(p.Voters))
	return nil
}

// promise records a promise, in the data directory if there is one, or returns the reason for which
// it must not. A promise is final: no other server can bootstrap a cluster with this one.
func (m *membership) promise(p promise) error {
	if err := m.recordPromise(p); err != nil || m.agent.disk == nil {
		return err
	}
	return errors.Join(m.agent.disk.KeepPromise(p.By), m.agent.disk.KeepCluster(p.Cluster))
}

func (m *membership) recordPromise(p promise) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case p.By == "" || !slices.ContainsFunc(p.Voters, func(v raft.Server) bool { return string(v.ID) == m.agent.Name() }):
		return errors.New("the promise is for a cluster without this server")
	case m.promised != "" && m.promised != p.By:
		return fmt.Errorf("this server has already promised server %s; if that server will never bootstrap a cluster, delete the file promise in the data directory and restart this server",
			m.promised)
	case len(m.agent.peers().configuration().Servers) > 0:
		return errors.New("this server is already in a cluster")
	}
	m.promised, m.cluster = p.By, p.Cluster
	return nil
}

// leave removes the server from its cluster.
func (m *membership) leave(ctx context.Context) error {
	m.stopSearch() // otherwise the server would rejoin at once
	m.mu.Lock()
	m.leaves = true
	m.mu.Unlock()
	a := m.agent
	var err error
	for m.hasPeers() {
		if a.peers().Leads() {
			// Remove transfers leadership and returns an error. The next leader removes this server.
			err = a.peers().Remove(ctx, a.Name())
		}
		if leader := a.peers().Leader(); leader != "" && !a.peers().Leads() {
			// Not found: an earlier request has removed the server, and the answer was lost.
			if _, err = requestInfo(ctx, a, leader, pathRemove, serverRef{ID: a.Name()}); err == nil || errors.Is(err, httpapi.ErrNotFound) {
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

// hasPeers reports whether the server is in a cluster with others.
func (m *membership) hasPeers() bool {
	members := m.agent.peers().configuration().Servers
	return len(members) > 1 && slices.ContainsFunc(members, func(s raft.Server) bool { return string(s.ID) == m.agent.Name() })
}
