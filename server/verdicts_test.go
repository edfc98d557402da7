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

// The leader writes its own time into an entry of reports as soon as every server understands it. Until
// then it writes the entry of an older server.
func TestRequests_ReportsHaveTheTimeOfTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		register(t, g, 1, 1)
		runs(t, g, 1)
		a := slices.Collect(g.Leader().Store().Snapshot().AllocsByJob(webKey))[0]
		report := func(healthy bool) time.Time {
			write(t, g, server.Requests.ReportAllocs, []cluster.AllocReport{{
				Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, Healthy: &healthy, HealthyAt: time.Unix(9, 0), At: time.Unix(9, 0),
			}})
			return g.Leader().Store().Snapshot().Alloc(a.ID).DeploymentStatus.UnhealthySince
		}
		raiseTo(t, g, cluster.VersionOfConfirmation-1)
		report(true)
		must.Eq(t, time.Time{}, report(false))
		report(true)
		raiseTo(t, g, cluster.VersionOfConfirmation)
		began := time.Now()
		since := report(false)
		must.False(t, since.Before(began) || since.After(time.Now()), must.Sprint(since))
	})
}
