package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// peers are the servers of the cluster, as this one has them.
type peers struct{ agent *Agent }

var _ httpapi.Peers = peers{}

func (p peers) raft() *raft.Raft { return p.agent.server.Raft() }

// Trouble states that this server cannot write its log, or is empty.
func (p peers) Trouble() string {
	if p.agent.disk == nil {
		return ""
	}
	err := p.agent.disk.WriteError()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("server %s cannot write its log: %v", p.Name(), err)
}

// Name returns the name of this server.
func (p peers) Name() string { return p.agent.Name() }

// Cluster returns the id of the cluster, or empty.
func (p peers) Cluster() string { return p.agent.membership.id() }

// Removed reports whether another server has removed this one from its cluster, as far as this one has read.
func (p peers) Removed() bool { return p.agent.membership.isRemoved() }

// Leads reports whether this server leads, by the present state of its raft.
func (p peers) Leads() bool { return p.agent.server.Leads() }

// Leader returns the address of the leader, or empty.
func (p peers) Leader() string {
	addr, _ := p.raft().LeaderWithID()
	return string(addr)
}

// Members returns the servers in the order of raft's configuration, in which they have joined.
func (p peers) Members() []httpapi.Member {
	_, leader := p.raft().LeaderWithID()
	var members []httpapi.Member
	for _, s := range p.configuration().Servers {
		state := p.agent.digests.verdict(s.ID)
		members = append(members, httpapi.Member{
			ID: string(s.ID), Address: string(s.Address), Leader: s.ID == leader, Voter: s.Suffrage == raft.Voter,
			Understands: p.agent.versions.understoodBy(s.ID), Agreement: state.Agreement, ComparedAt: state.Index,
		})
	}
	return members
}

// configuration returns raft's newest configuration on this server, empty without a cluster.
func (p peers) configuration() raft.Configuration {
	f := p.raft().GetConfiguration()
	if f.Error() != nil {
		return raft.Configuration{}
	}
	return f.Configuration()
}

// LastContact returns the time since the last message of the leader, or since the start.
func (p peers) LastContact() time.Duration {
	if p.Leads() {
		return 0
	}
	last := p.raft().LastContact()
	if last.IsZero() {
		last = p.agent.started
	}
	return time.Since(last)
}

// Join adds a server, or updates its address. It first requests the name and the cluster
// of the server at the address: an absent or wrong voter could cost the cluster its quorum. It returns an error if
// another server of that name runs.
func (p peers) Join(ctx context.Context, id, address string) error {
	switch {
	case id == "" || address == "":
		return errors.New("joining: the server's id or address is missing")
	case !p.Leads():
		return httpapi.ErrNotLeader
	case id != p.Name() && p.agent.port.listener == nil:
		return fmt.Errorf("adding server %s: %w", id, errClosedPort)
	case slices.Contains(p.configuration().Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(address)}):
		return nil
	}
	if err := p.agent.versions.acquire(ctx); err != nil {
		return fmt.Errorf("adding server %s: %w", id, err)
	}
	defer p.agent.versions.release()
	if err := p.admit(ctx, id, address); err != nil {
		return fmt.Errorf("adding server %s: %w", id, err)
	}
	if err := p.await(ctx, p.raft().AddVoter(raft.ServerID(id), raft.ServerAddress(address), 0, configTimeout)); err != nil {
		return fmt.Errorf("adding server %s: %w", id, err)
	}
	p.agent.config.Logger.Info("a server joined, or changed its address", "server", id, "address", address)
	return nil
}

// admit returns an error if the server at the address has another name or does not answer, if a
// server of that name also answers at its known address, or if the server has the log of another
// cluster or does not understand the cluster version. The caller holds the lock of versions.
func (p peers) admit(ctx context.Context, id, address string) error {
	a := p.agent
	if id == a.Name() {
		if address != a.ServerAddr() {
			return fmt.Errorf("the leader has the same name, at %s", a.ServerAddr())
		}
		return nil
	}
	info, err := requestInfo(ctx, a, address, pathServer, a.info())
	if err != nil {
		return err
	}
	mine := a.membership.id()
	switch {
	case info.ID != id:
		return fmt.Errorf("the server at %s is %s", address, info.ID)
	case info.Members > 0 && info.Cluster != "" && mine != "" && info.Cluster != mine:
		return fmt.Errorf("it has the log of another cluster (%s) than this one (%s): to join, start it with an empty data directory", info.Cluster, mine)
	}
	if err := a.versions.admit(ctx, info); err != nil {
		return err
	}
	for _, s := range p.configuration().Servers {
		if string(s.ID) != id {
			continue
		}
		if there, err := requestInfo(ctx, a, string(s.Address), pathServer, a.info()); err == nil && there.ID == id {
			return fmt.Errorf("another server with the same name answers at %s: give each server its own name", s.Address)
		}
	}
	return nil
}

// Remove removes a server. A leader that must remove itself transfers leadership first, and returns
// [httpapi.ErrNotLeader]: the next leader removes it.
func (p peers) Remove(ctx context.Context, id string) error {
	if !p.Leads() {
		return httpapi.ErrNotLeader
	}
	members := p.configuration().Servers
	at := slices.IndexFunc(members, func(s raft.Server) bool { return string(s.ID) == id })
	switch {
	case at < 0:
		return fmt.Errorf("no server has the id %s: %w", id, httpapi.ErrNotFound)
	case len(members) == 1:
		return errors.New("the last server of a cluster cannot be removed")
	case id == p.Name():
		if err := p.await(ctx, p.raft().LeadershipTransfer()); err != nil {
			return fmt.Errorf("transferring leadership: %w", err)
		}
		return httpapi.ErrNotLeader
	}
	if err := p.await(ctx, p.raft().RemoveServer(raft.ServerID(id), 0, configTimeout)); err != nil {
		return fmt.Errorf("removing server %s: %w", id, err)
	}
	p.agent.config.Logger.Info("a server was removed", "server", id)
	p.agent.running.Go(func() { p.agent.membership.notifyRemoved(members[at]) })
	return nil
}

// configTimeout bounds the time until raft accepts a change of its configuration.
const configTimeout = 5 * time.Second

// await waits for a change of raft's configuration or of leadership. The goroutine that waits for
// raft may outlive the call.
func (p peers) await(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	p.agent.running.Go(func() { done <- f.Error() })
	select {
	case err := <-done:
		return server.Classify(err)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", httpapi.ErrUnknown, context.Cause(ctx))
	}
}

// awaitLeader waits up to [Config].LeaderWait for a leader, and returns its address. It returns an
// empty address if there is none and when the agent stops.
func (p peers) awaitLeader(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, p.agent.config.LeaderWait)
	defer cancel()
	for {
		changed := p.agent.leaders.changed()
		if leader := p.Leader(); leader != "" {
			return leader
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ""
		case <-p.agent.life.Done():
			return ""
		}
	}
}
