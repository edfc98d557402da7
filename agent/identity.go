package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"
)

// A cluster has an id, which the server that begins it makes, and which all its servers keep beside
// their logs. By the id servers notice that an address now belongs to another cluster: their logs
// must not be mixed.

// id is the id of this server's cluster, or empty.
func (m *membership) id() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cluster
}

// begin keeps an id for a cluster that this server begins without asking others: a new one, or with
// given voters the id that follows from them.
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

// adopt takes over the id of a cluster that this server is in or about to join. It refuses if this
// server has the log of another cluster.
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
	return m.agent.disk.KeepCluster(id)
}
