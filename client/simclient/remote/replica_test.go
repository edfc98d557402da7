package remote

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A replica finds an allocation by its id on the node that had it last.
func TestReplica_Alloc(t *testing.T) {
	t.Parallel()
	r := newReplica([]*cluster.Node{{ID: "n1"}, {ID: "n2"}})
	a, b := &cluster.Allocation{ID: "a", NodeID: "n1"}, &cluster.Allocation{ID: "b", NodeID: "n2"}
	r.set("n1", []*cluster.Allocation{a})
	r.set("n2", []*cluster.Allocation{b})
	must.Eq(t, a, r.Alloc("a"))
	must.Eq(t, b, r.Alloc("b"))
	must.Nil(t, r.Alloc(""))

	ended := &cluster.Allocation{ID: "b", NodeID: "n2", ClientStatus: cluster.ClientComplete}
	r.set("n1", nil)
	r.set("n2", []*cluster.Allocation{ended})
	must.Nil(t, r.Alloc("a"))
	must.Eq(t, ended, r.Alloc("b"))
	must.Eq(t, 4, r.Index())
	for range r.LiveAllocsByNode("n2") {
		t.Fatal("it has ended")
	}
}
