package remote

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// An allocation is found by its id, on its node, in views that were taken when it was there.
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

// To find an allocation costs no look at other nodes than its own, however many there are,
// nor does to find none: each of a thousand other nodes has allocations with the same ids that the
// replica lacks, and a look at one of those nodes would find them.
func TestView_Alloc_looksAtOneNode(t *testing.T) {
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
