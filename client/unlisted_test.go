package client_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// unlisted checks which allocations the newest published facts contain as unlisted.
func unlisted(n *node, ids ...cluster.AllocID) {
	n.t.Helper()
	must.SliceNotEmpty(n.t, n.published)
	must.Eq(n.t, cluster.NewUnlistedAllocs(ids), n.published[len(n.published)-1].Unlisted)
}

// empty sends an answer of servers that have no allocation of the node.
func empty(n *node, clusterID string) {
	n.index++
	n.core.Servers(client.Changes{ClusterID: clusterID, Index: n.index, All: true, Complete: true})
}

// Bug: the servers were restored from an older state, and a drain was complete while the client stopped what
// the state did not have. The client publishes it at once, and publishes again when the tasks have ended.
func TestUnlisted_untilItHasEnded(t *testing.T) {
	n := newRunning(t, script{ignores: true}, time.Minute)
	unlisted(n)
	count := len(n.published)
	empty(n, "cluster-1")
	n.run(time.Millisecond)
	must.Len(t, count+1, n.published)
	unlisted(n, "a")
	n.run(time.Second)
	must.Len(t, 1, n.live("web"))
	for range 100 {
		n.index++
		n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: n.index, Complete: true})
	}
	n.run(time.Hour)
	must.SliceEmpty(t, n.live(""))
	must.Len(t, count+2, n.published, must.Sprint("the same set is published once"))
	unlisted(n)
}

// Bug: the servers started from an older copy of their data. The client ignored all answers below its index, so
// it registered nothing, and a drain was complete while it ran what the servers had lost.
func TestUnlisted_afterALossOfTheServers(t *testing.T) {
	for name, c := range map[string]struct {
		answer client.Changes
		obeyed bool
	}{
		"older, with all allocations":  {client.Changes{All: true, Complete: true}, true},
		"newer, with all allocations":  {client.Changes{Index: 1000, All: true, Complete: true}, true},
		"older, with a list":           {client.Changes{Complete: true}, false},
		"older, without a list":        {client.Changes{}, false},
		"older and of another cluster": {client.Changes{ClusterID: "cluster-2", All: true, Complete: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newRunning(t, script{ignores: true}, time.Minute)
			c.answer.ClusterID = cmp.Or(c.answer.ClusterID, "cluster-1")
			n.core.Servers(c.answer)
			n.run(time.Second)
			must.Len(t, 1, n.live("web"))
			must.EqOp(t, c.obeyed, !n.core.Foreign() && n.published[len(n.published)-1].Unlisted.Len() == 1)
			n.run(time.Hour)
			must.EqOp(t, c.obeyed, len(n.live("web")) == 0, must.Sprint("the client stops what the servers do not have"))
		})
	}
}

// The servers have lost the registration too. The client registers the same set again.
func TestUnlisted_afterALossOfItsRegistration(t *testing.T) {
	n := newRunning(t, script{ignores: true}, time.Minute)
	empty(n, "cluster-1")
	n.run(time.Second)
	count := len(n.published)
	empty(n, "cluster-1")
	n.run(time.Second)
	must.Len(t, count+1, n.published)
	unlisted(n, "a")

	n.core.Forgotten() // the servers have lost the node
	n.index -= 2
	empty(n, "cluster-1")
	n.run(time.Second)
	index := n.index
	b := allocation("b", mainTask("web"))
	n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: index + 1, Allocs: []*cluster.Allocation{b}})
	n.run(time.Second)
	must.Eq(t, []cluster.AllocID{"a"}, n.published[len(n.published)-1].Unlisted.Allocs)
	must.EqOp(t, cluster.ClientRunning, n.status("b"), must.Sprint("the client obeys the servers"))
}

// Bug: facts that were published a moment before delayed the set of unlisted allocations by the interval between two
// writes. Meanwhile a drain could be complete.
func TestUnlisted_soonAfterOtherFacts(t *testing.T) {
	n := newRunning(t, script{ignores: true}, time.Minute)
	n.core.Fingerprint("mock", n.driver.generation, driver.Fingerprint{Health: driver.Healthy, Description: "another text"})
	n.run(time.Millisecond)
	count := len(n.published)
	must.EqOp(t, "another text", n.published[count-1].Drivers["mock"].HealthDescription)
	empty(n, "cluster-1")
	n.run(time.Millisecond)
	must.Len(t, count+1, n.published)
	unlisted(n, "a")
}

// The servers are a new cluster, which does not list what the old one placed.
func TestUnlisted_ofAnotherCluster(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	empty(n, "cluster-2")
	n.run(time.Minute)
	must.Len(t, 1, n.live(""))
	unlisted(n, "a")
	n.answer()
	n.run(time.Minute)
	unlisted(n)
}

// The servers do not have the node: all that runs is unlisted until an answer lists it.
func TestUnlisted_ofForgottenNodes(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	count := len(n.published)
	n.core.Forgotten()
	n.run(time.Millisecond)
	must.Len(t, count+1, n.published)
	unlisted(n, "a")
	n.answer()
	n.run(time.Minute)
	unlisted(n)
}

// A client that starts has read no answer. The first answer with all allocations shows it.
func TestUnlisted_afterAStart(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.place(allocation("b", mainTask("other")))
	n.run(time.Minute)
	n.crash()
	must.Eq(t, cluster.NewUnlistedAllocs([]cluster.AllocID{"a", "b"}), n.core.Facts().Unlisted)
	n.run(time.Minute)
	unlisted(n, "a", "b")
	n.answer()
	n.run(time.Minute)
	unlisted(n)
}

// A lost allocation has a row that a drain counts. When nothing lists it any more, because time or an operator
// has confirmed its end, the client reports that its tasks run.
func TestUnlisted_lostAllocations(t *testing.T) {
	n := newRunning(t, script{ignores: true}, time.Minute)
	lost := func(confirmed time.Time) {
		n.index++
		a := n.allocs[0].Copy()
		a.ClientStatus, a.DesiredStatus, a.AllocModifyIndex, a.ConfirmedAt = cluster.ClientLost, cluster.DesiredStop, n.index, confirmed
		n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: n.index, All: true, Complete: true, Allocs: []*cluster.Allocation{a}})
		n.run(time.Second)
		must.Len(t, 1, n.live("web"))
	}
	lost(time.Time{})
	unlisted(n)
	lost(n.time().Wall)
	unlisted(n, "a")
	n.run(time.Hour)
	unlisted(n)
}
