package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"
)

// A cluster has an id, made by who begins it and kept by all of its servers beside their
// logs. By it servers tell that an address which was in one cluster is now in another:
// two logs that became one would be no log at all.

// id is the id of this server's cluster, or empty.
func (m *membership) id() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cluster
}

// begin keeps an id for a cluster that this server begins without asking others: one of
// its own, or if it was given the voters the one that follows from them.
func (m *membership) begin() error {
	c := &m.agent.config
	switch {
	case m.id() != "":
		return nil
	case c.BootstrapExpect == 1:
		return m.keep(uuid.NewString())
	case c.Voters != nil:
		var voters strings.Builder
		for _, v := range slices.SortedFunc(slices.Values(c.Voters), func(a, b raft.Server) int { return strings.Compare(string(a.ID), string(b.ID)) }) {
			fmt.Fprintf(&voters, "%q %q\n", v.ID, v.Address)
		}
		return m.keep(uuid.NewSHA1(uuid.Nil, []byte(voters.String())).String())
	}
	return nil
}

// adopt takes over the id of a cluster that has this server, or is about to. One that has
// the log of another cluster is not to get into this one.
func (m *membership) adopt(member serverInfo) error {
	mine := m.id()
	switch {
	case member.Members == 0, member.Cluster == "", member.Cluster == mine:
		return nil
	case mine != "" && len(m.agent.peers().configuration().Servers) > 0:
		return fmt.Errorf("server %s at %s is in another cluster (%s) than this one (%s)", member.ID, member.Address, member.Cluster, mine)
	}
	return m.keep(member.Cluster)
}

func (m *membership) keep(id string) error {
	m.mu.Lock()
	m.cluster = id
	m.mu.Unlock()
	if m.agent.disk == nil {
		return nil
	}
	return m.agent.disk.keep(clusterFile, id)
}
