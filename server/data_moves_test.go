package server_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// The leader leaves moves of data out of an entry of reports until every server understands them. The rest of
// the report is written.
func TestRequests_ReportsOfMovesNeedTheVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		register(t, g, 1, 1)
		runs(t, g, 1)
		a := slices.Collect(g.Leader().Store().Snapshot().AllocsByJob(webKey))[0]
		report := func(description string, in cluster.DataMove) *cluster.Allocation {
			write(t, g, server.Requests.ReportAllocs, []cluster.AllocReport{{
				Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, ClientDescription: description, DataIn: &in, At: time.Now(),
			}})
			return g.Leader().Store().Snapshot().Alloc(a.ID)
		}
		raiseTo(t, g, cluster.VersionOfData-1)
		row := report("first", cluster.DataMove{State: cluster.DataCopying})
		must.Eq(t, "first", row.ClientDescription)
		must.Nil(t, row.DataIn)
		raiseTo(t, g, cluster.VersionOfData)
		row = report("second", cluster.DataMove{State: cluster.DataCopied, Bytes: 7})
		must.Eq(t, cluster.DataCopied, row.DataIn.State)
		must.False(t, row.DataIn.EndedAt.IsZero(), must.Sprint("the time of the entry"))
	})
}
