package server_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// A new leader goes on with the wait of the last one: it frees the volume of an unreachable node at the
// same time, neither earlier nor after another full wait. Two leaders are lost on the way.
func TestServer_aNewLeaderFreesTheVolumeOfAnUnreachableNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, first, waits := writerOnADownNode(t, 5)
		claims := func() []*cluster.VolumeClaim {
			return slices.Collect(g.Leader().Store().Snapshot().WorkView().Claims())
		}
		down := time.Now()
		for range 2 {
			time.Sleep(waits / 3)
			must.NoError(t, g.Kill(g.Leader()))
			for g.Leader() == nil {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(time.Until(down.Add(waits - time.Second)))
		must.Eq(t, []*cluster.VolumeClaim{first}, claims())
		time.Sleep(20 * time.Second)
		must.Len(t, 1, claims())
		must.NotEq(t, first.Alloc, claims()[0].Alloc)
	})
}

// A node with the only writer of a volume goes down. Its allocation is lost at once and its replacement
// waits, until the node must have stopped the writer; then it gets the volume.
func TestServer_freesTheVolumeOfAnUnreachableNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, first, waits := writerOnADownNode(t, 3)
		claims := func() []*cluster.VolumeClaim {
			return slices.Collect(g.Leader().Store().Snapshot().WorkView().Claims())
		}
		time.Sleep(waits - time.Second)
		must.Eq(t, cluster.ClientLost, g.Leader().Store().Snapshot().Alloc(first.Alloc).ClientStatus)
		must.Eq(t, []*cluster.VolumeClaim{first}, claims())
		time.Sleep(20 * time.Second)
		must.Len(t, 1, claims())
		must.NotEq(t, first.Node, claims()[0].Node)
		must.NotEq(t, first.Alloc, claims()[0].Alloc)
	})
}

// In a cluster with older servers a drain begins without the plan of its request. When the version has risen, the
// journal keeps it.
func TestServer_planOfADrainInAMixedCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{})
		write(t, g, server.Requests.RegisterNode, testNode("n1"))
		foretold := &cluster.DrainPlan{Sentence: "no allocation leaves", Index: 3}
		for _, version := range []cluster.Version{cluster.VersionOfJournals - 1, cluster.VersionOfJournals} {
			raiseTo(t, g, version)
			id := cluster.DrainID(fmt.Sprint("d", version))
			_, err := g.Leader().Requests().UpdateDrain(t.Context(), cluster.DrainUpdate{Node: "n1", Drain: id, Spec: &cluster.DrainSpec{}, Plan: foretold})
			must.NoError(t, err)
			time.Sleep(5 * time.Second)
			record, story := g.Leader().Store().Snapshot().Story(id)
			must.Eq(t, cluster.OutcomeComplete, record.Outcome)
			if version < cluster.VersionOfJournals {
				must.Nil(t, story)
				continue
			}
			must.Eq(t, foretold, story.Plan)
		}
	})
}

// A node with a group that has stop_on_client_after goes down and is drained. The drain ends
// unconfirmed, and the leader confirms it when the node must have stopped the allocation. A new leader
// goes on with the wait.
func TestServer_confirmsTheStopsOfAnUnreachableNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 3})
		write(t, g, server.Requests.RaiseVersion, cluster.MaxVersion)
		write(t, g, server.Requests.RegisterNode, testNode("n1"))
		j := clustertest.Job("web", cluster.JobService, 1)
		j.TaskGroups[0].Disconnect.StopOnClientAfter = 10 * time.Minute
		registerJob(t, g, j)
		runs(t, g, 1)
		state := func() *statestore.Snapshot { return g.Leader().Store().Snapshot() }
		do(t, g, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().UpdateNodeStatus(ctx, "n1", cluster.NodeDown)
			return err
		})
		down := time.Now()
		time.Sleep(5 * time.Second)
		do(t, g, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().UpdateDrain(ctx, cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}})
			return err
		})
		time.Sleep(5 * time.Second)
		record := state().DrainRecord("d1")
		must.NotNil(t, record)
		must.Eq(t, cluster.OutcomeUnconfirmed, record.Outcome)
		must.Len(t, 1, record.Unconfirmed.Allocs)

		waits := j.TaskGroups[0].Disconnect.StopOnClientAfter + state().Alloc(record.Unconfirmed.Allocs[0]).StopTime() + cluster.StopMarginOfNode
		must.NoError(t, g.Kill(g.Leader()))
		for g.Leader() == nil {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Until(down.Add(waits - time.Second)))
		must.Eq(t, record, state().DrainRecord("d1"))
		time.Sleep(20 * time.Second)
		confirmed := state().DrainRecord("d1")
		must.Zero(t, confirmed.CountUnconfirmed())
		must.True(t, !confirmed.Unconfirmed.ConfirmedAt.Before(down.Add(waits)))
		must.Eq(t, "", confirmed.Unconfirmed.ConfirmedBy)
	})
}

// writerOnADownNode starts a group in which the node of the only writer of a volume has gone down. It
// returns the writer's claim, and the wait until it is over. The other node could take the volume.
func writerOnADownNode(t *testing.T, servers int) (*server.Group, *cluster.VolumeClaim, time.Duration) {
	t.Helper()
	g := newGroup(t, server.GroupConfig{Servers: servers})
	mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	write(t, g, server.Requests.RaiseVersion, cluster.MaxVersion)
	write(t, g, server.Requests.RegisterVolume, &cluster.Volume{ID: "data", ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode}})
	for _, id := range []cluster.NodeID{"n1", "n2"} {
		n := testNode(id)
		n.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Healthy: true}}
		write(t, g, server.Requests.RegisterNode, n)
	}
	j := clustertest.Job("web", cluster.JobService, 1)
	group := j.TaskGroups[0]
	group.Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: mode}}
	group.Disconnect.StopOnClientAfter = 10 * time.Minute
	registerJob(t, g, j)
	runs(t, g, 1)
	claims := slices.Collect(g.Leader().Store().Snapshot().WorkView().Claims())
	must.Len(t, 1, claims)
	first := claims[0]

	do(t, g, func(ctx context.Context, s *server.Server) error {
		_, err := s.Requests().UpdateNodeStatus(ctx, first.Node, cluster.NodeDown)
		return err
	})
	waits := group.Disconnect.StopOnClientAfter + g.Leader().Store().Snapshot().Alloc(first.Alloc).StopTime() + cluster.StopMarginOfNode
	return g, first, waits
}
