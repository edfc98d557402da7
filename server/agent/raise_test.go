package agent_test

import (
	"net"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// The leader does not raise the cluster version while a server does not answer, and raises it when that
// server answers. Before that, a second process of a node is refused, and no entry records it.
func TestVersions_waitForAnAbsentServer(t *testing.T) {
	t.Parallel()
	var voters []raft.Server
	var held []net.Listener // so that no other test gets the ports
	for _, name := range []raft.ServerID{"s1", "s2", "s3"} {
		l := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
		voters = append(voters, raft.Server{ID: name, Address: raft.ServerAddress(l.Addr().String())})
		held = append(held, l)
	}
	begin := func(i int) *agent.Agent {
		must.NoError(t, held[i].Close())
		c := agent.Config{Name: string(voters[i].ID), ServerAddr: string(voters[i].Address), Voters: voters}
		agent.SearchLonger(&c)
		return start(t, c)
	}
	two := []*agent.Agent{begin(0), begin(1)}
	ready(t, two...)
	understood := func(of string) (known int) {
		for _, a := range two {
			for _, m := range a.Backend().Peers.Members() {
				if m.ID == of && m.Understands == cluster.Understood() {
					known++
				}
			}
		}
		return known
	}
	// The leader has the versions of every server that answered. Each server has its own.
	eventually(t, "the leader has the versions of both servers", func() bool { return understood("s1")+understood("s2") == 3 })
	must.Zero(t, understood("s3"))
	for _, a := range two {
		must.Eq(t, 1, a.Server().Store().Snapshot().ClusterVersion())
	}
	n := testNode(1)
	register(t, result.Of(apiclient.New(as(two[0], n, "p1"))).OK(t), n)
	awaitSameState(t, two...)
	holdBy(t, as(two[0], n, "p1"), n)
	refused(t, two[1], n, "p2")
	must.SliceEmpty(t, refusals(two[0], n))

	all := append(two, begin(2))
	ready(t, all...)
	for _, a := range all {
		eventually(t, "the version is raised", func() bool { return a.Server().Store().Snapshot().ClusterVersion() == cluster.MaxVersion })
	}
	awaitSameState(t, all...)
}
