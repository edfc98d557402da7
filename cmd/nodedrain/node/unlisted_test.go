package node

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A client that ignores the servers reports all that it runs as unlisted. Bug: "node status" showed allocations of its
// table as ones that the servers do not list, and "node purge" counted them twice.
func TestUnlistedOn(t *testing.T) {
	t.Parallel()
	node := &wire.Node{Unlisted: &wire.UnlistedAllocs{Count: 25, Allocs: []string{"confirmed", "lost", "none", "running"}}}
	allocs := []*wire.Allocation{
		{ID: "running", ClientStatus: "running"}, {ID: "lost", ClientStatus: "lost"}, {ID: "other", ClientStatus: "running"},
		{ID: "confirmed", ClientStatus: "lost", ConfirmedAt: wire.NewTime(time.Unix(1, 0))},
	}
	must.Eq(t, wire.UnlistedAllocs{Count: 23, Allocs: []string{"confirmed", "none"}}, unlistedOn(node, allocs))
	must.Eq(t, wire.UnlistedAllocs{}, unlistedOn(&wire.Node{}, allocs))
	must.Eq(t, 26, countMayRun(node, allocs))
}
