package client_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const tooDeep = "Job is nested 10005 levels deep"

// unreadableNode is a node with an allocation that the client cannot read, between two that it can.
func unreadableNode(t *testing.T) *node {
	n := newNode(t)
	n.unreadable = map[cluster.AllocID]string{"b": tooDeep}
	n.place(allocation("a", mainTask("web")))
	n.place(allocation("b", mainTask("deep")))
	n.place(allocation("c", mainTask("db")))
	return n
}

// An allocation that the client cannot read fails with the reason, and the others run. The same holds
// after a restart of the client, before and after it has reported the allocation.
func TestCore_unreadable(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(n *node){
		"no restart":      func(*node) {},
		"after a report":  func(n *node) { n.run(5 * time.Second); n.crash() },
		"before a report": func(n *node) { n.silent = true; n.run(5 * time.Second); n.crash(); n.silent = false },
		"without records": func(n *node) { n.run(5 * time.Second); delete(n.disk, "b"); n.crash() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := unreadableNode(t)
			restart(n)
			n.answer()
			reaches(n, "b", cluster.ClientFailed, 20*time.Second)
			must.EqOp(t, "the client cannot read the allocation: "+tooDeep, n.servers["b"].ClientDescription)
			must.SliceEmpty(t, n.live("deep"))
			for _, id := range []cluster.AllocID{"a", "c"} {
				must.EqOp(t, cluster.ClientRunning, n.status(id))
			}
			must.Len(t, 1, n.live("web"))
			must.Len(t, 1, n.live("db"))
			ends(n, "c", 20*time.Second)
			must.EqOp(t, cluster.ClientFailed, n.status("b"))
		})
	}
}

// The client continues an allocation that it runs and cannot read any more, also after a restart. A stop
// of the servers still stops it.
func TestCore_runningAllocationBecomesUnreadable(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"no restart": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newRunning(t, script{}, 20*time.Second)
			web := n.live("web")[0]
			n.unreadable = map[cluster.AllocID]string{"a": tooDeep}
			n.index++
			n.allocs[0].AllocModifyIndex = n.index
			n.answer()
			n.run(20 * time.Second)
			if restart {
				restarts(n, 20*time.Second)
			}
			must.Eq(t, []*task{web}, n.live("web"))
			must.EqOp(t, cluster.ClientRunning, n.status("a"))
			must.NotNil(t, n.disk["a"].Alloc.Job, must.Sprint("the job of the record"))
			ends(n, "a", 20*time.Second)
			must.SliceEmpty(t, n.live("web"))
		})
	}
}

// An unreadable allocation that the servers have already stopped ends, one that has ended is ignored, and
// one whose node cannot be read belongs to this node.
func TestCore_unreadableFields(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: 5, Unreadable: []client.Unreadable{
		{Alloc: &cluster.Allocation{ID: "a"}, Reason: "NodeID: json: cannot unmarshal"},
		{Alloc: &cluster.Allocation{ID: "b", NodeID: "node-1", DesiredStatus: cluster.DesiredStop}, Reason: tooDeep},
		{Alloc: &cluster.Allocation{ID: "c", NodeID: "node-1", ClientStatus: cluster.ClientLost}, Reason: tooDeep},
		{Alloc: &cluster.Allocation{ID: "d", NodeID: "node-2"}, Reason: tooDeep},
	}, Nameless: []string{"allocation 4: the ID is missing"}})
	reaches(n, "a", cluster.ClientFailed, 10*time.Second)
	must.EqOp(t, cluster.ClientFailed, n.status("b"))
	must.MapLen(t, 2, n.servers)
}
