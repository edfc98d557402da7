package remote

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A view finds an allocation by its id if the allocation was on its node when the view was taken.
func TestView_Alloc(t *testing.T) {
	t.Parallel()
	r := newReplica([]*cluster.Node{{ID: "n1"}, {ID: "n2"}})
	before := r.newest()
	a, b := &cluster.Allocation{ID: "a", NodeID: "n1"}, &cluster.Allocation{ID: "b", NodeID: "n2"}
	r.set("n1", []*cluster.Allocation{a})
	r.set("n2", []*cluster.Allocation{b})
	both := r.newest()
	must.Eq(t, a, both.Alloc("a"))
	must.Eq(t, b, both.Alloc("b"))
	must.Nil(t, both.Alloc(""))
	must.Nil(t, before.Alloc("b"))

	ended := &cluster.Allocation{ID: "b", NodeID: "n2", ClientStatus: cluster.ClientComplete}
	r.set("n1", nil)
	r.set("n2", []*cluster.Allocation{ended})
	must.Nil(t, r.newest().Alloc("a"))
	must.Eq(t, ended, r.newest().Alloc("b"))
	must.Eq(t, b, both.Alloc("b"))
}

// Alloc reads only the allocation's node. The other thousand nodes of this test have allocations
// with the same ids, which a search of all nodes would find.
func TestView_Alloc_readsOneNode(t *testing.T) {
	t.Parallel()
	r := newReplica(nil)
	r.set("here", []*cluster.Allocation{{ID: "a", NodeID: "here"}})
	v := r.newest()
	for n := range 1000 {
		id := cluster.NodeID(fmt.Sprintf("elsewhere%d", n))
		v.allocs[id] = []*cluster.Allocation{{ID: "a", NodeID: id}, {ID: "none", NodeID: id}}
	}
	must.Eq(t, "here", v.Alloc("a").NodeID)
	must.Nil(t, v.Alloc("none"))
}
