package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"
)

// A cluster has an id. The server that bootstraps the cluster creates it, and each server stores it
// beside its log. By the id a server detects that an address now belongs to another cluster. Servers
// with logs of different clusters must not exchange raft entries.

// id returns the id of this server's cluster, or empty.
func (m *membership) id() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cluster
}

// createID stores an id for a cluster that this server bootstraps without requests to others: a new UUID,
// or a hash of [Config].Voters, which is the same on all of them.
func (m *membership) createID() error {
	c := &m.agent.config
	switch {
	case m.id() != "":
		return nil
	case c.BootstrapExpect == 1:
		return m.storeID(uuid.NewString())
	case c.Voters != nil:
		var voters strings.Builder
		for _, v := range slices.SortedFunc(slices.Values(c.Voters), func(a, b raft.Server) int { return strings.Compare(string(a.ID), string(b.ID)) }) {
			fmt.Fprintf(&voters, "%q %q\n", v.ID, v.Address)
		}
		return m.storeID(uuid.NewSHA1(uuid.Nil, []byte(voters.String())).String())
	}
	return nil
}

// adopt stores the id of the member's cluster, which this server is in or joins. It returns an error
// if this server has the log of another cluster.
func (m *membership) adopt(member serverInfo) error {
	mine := m.id()
	switch {
	case member.Members == 0, member.Cluster == "", member.Cluster == mine:
		return nil
	case mine != "" && len(m.agent.peers().configuration().Servers) > 0:
		return fmt.Errorf("server %s at %s is in another cluster (%s) than this one (%s)", member.ID, member.Address, member.Cluster, mine)
	}
	return m.storeID(member.Cluster)
}

func (m *membership) storeID(id string) error {
	m.mu.Lock()
	m.cluster = id
	m.mu.Unlock()
	if m.agent.disk == nil {
		return nil
	}
	return m.agent.disk.KeepCluster(id)
}
