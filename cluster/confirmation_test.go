package cluster_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Time confirms the end of a lost allocation only if its node must have stopped it by itself.
func TestConfirmableAt(t *testing.T) {
	t.Parallel()
	lostAt := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	const after, killTimeout = 10 * time.Minute, 20 * time.Second
	stopped := lostAt.Add(after + killTimeout + cluster.StopMarginOfNode)
	for name, test := range map[string]struct {
		edit func(a *cluster.Allocation, n *cluster.Node) *cluster.Node
		want time.Time
	}{
		"the node is down": {nil, stopped},
		"the node is disconnected": {func(_ *cluster.Allocation, n *cluster.Node) *cluster.Node {
			n.Status = cluster.NodeDisconnected
			return n
		}, stopped},
		"the node has been deleted": {func(*cluster.Allocation, *cluster.Node) *cluster.Node { return nil }, stopped},
		"the node is back: its client must report": {func(_ *cluster.Allocation, n *cluster.Node) *cluster.Node {
			n.Status, n.AwaySince = cluster.NodeReady, time.Time{}
			return n
		}, time.Time{}},
		"the node was back for a while": {func(_ *cluster.Allocation, n *cluster.Node) *cluster.Node {
			n.AwaySince = lostAt.Add(time.Hour)
			return n
		}, stopped.Add(time.Hour)},
		"the group has no stop_on_client_after": {func(a *cluster.Allocation, n *cluster.Node) *cluster.Node {
			a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = 0
			return n
		}, time.Time{}},
		"no job version": {func(a *cluster.Allocation, n *cluster.Node) *cluster.Node {
			a.Job = nil
			return n
		}, time.Time{}},
		"an older server gave it up": {func(a *cluster.Allocation, n *cluster.Node) *cluster.Node {
			a.AwaySince, n.AwaySince = time.Time{}, time.Time{}
			return n
		}, time.Time{}},
		"it is confirmed": {func(a *cluster.Allocation, n *cluster.Node) *cluster.Node {
			a.ConfirmedAt = lostAt
			return n
		}, time.Time{}},
		"its client reported the end": {func(a *cluster.Allocation, n *cluster.Node) *cluster.Node {
			a.ClientStatus = cluster.ClientFailed
			return n
		}, time.Time{}},
		"a volume, with the limit of the node": {func(a *cluster.Allocation, n *cluster.Node) *cluster.Node {
			a.Job.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "data"}}
			n.VolumeAllowance = time.Minute
			return n
		}, stopped.Add(time.Minute)},
		"a volume, and the limit was deleted with the node": {func(a *cluster.Allocation, _ *cluster.Node) *cluster.Node {
			a.Job.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "data"}}
			return nil
		}, time.Time{}},
	} {
		a := &cluster.Allocation{
			ID: "a", TaskGroup: "g", ClientStatus: cluster.ClientLost, AwaySince: lostAt,
			Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{{
				Name: "g", Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: after}, Tasks: []*cluster.Task{{KillTimeout: killTimeout}},
			}}},
		}
		n := &cluster.Node{ID: "n", Status: cluster.NodeDown, AwaySince: lostAt}
		if test.edit != nil {
			n = test.edit(a, n)
		}
		must.Eq(t, test.want, cluster.ConfirmableAt(a, n), must.Sprint(name))
		must.Eq(t, !test.want.IsZero(), cluster.IsConfirmable(a, n, test.want), must.Sprint(name))
		must.False(t, cluster.IsConfirmable(a, n, test.want.Add(-1)), must.Sprint(name))
	}
}
