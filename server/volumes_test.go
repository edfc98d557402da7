package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// While a cluster has an older server, a node registers without its storage plugins and limits, and runs
// other work. Volumes, jobs that use them and changes of claims are refused with the remedy, before
// anything of them is in the log. After the last server is upgraded the node registers again, and the
// job gets its volume, on every server.
func TestServer_volumesNeedEveryServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 3})
		mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
		data := &cluster.Volume{ID: "data", ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode}}
		key := cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: "data"}
		node := testNode("n1")
		node.VolumeAllowance, node.HoldLimit = time.Minute, time.Hour
		node.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Healthy: true}}
		job := clustertest.Job("web", cluster.JobService, 1)
		job.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: mode}}
		writes := map[string]func(context.Context, *server.Server) error{
			"a volume": func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().RegisterVolume(ctx, data)
				return err
			},
			"a deregistration": func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().DeregisterVolume(ctx, key, true)
				return err
			},
			"a detachment": func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().DetachVolume(ctx, key, "n1", true)
				return err
			},
			"a claim": func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().UpdateClaims(ctx, []cluster.ClaimChange{{Claim: cluster.ClaimKey{Volume: key, Alloc: "a"}, Node: "n1", Cause: cluster.CauseNode}})
				return err
			},
			"a job": func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().RegisterJob(ctx, job, cluster.JobRegistration{})
				return err
			},
		}
		registerNode := func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterNode(ctx, node)
			return err
		}
		do(t, g, registerNode)
		for _, older := range []cluster.Version{cluster.MinVersion, cluster.VersionOfVolumes - 1} {
			raiseTo(t, g, older)
			do(t, g, registerNode)
			for name, write := range writes {
				before := g.Leader().Store().Snapshot().Index()
				do(t, g, func(ctx context.Context, s *server.Server) error {
					err := write(ctx, s)
					must.ErrorIs(t, err, cluster.ErrVersion, must.Sprint(name))
					must.ErrorContains(t, err, "upgrade every server of the cluster", must.Sprint(name))
					return nil
				})
				must.Eq(t, before, g.Leader().Store().Snapshot().Index(), must.Sprint(name))
			}
			time.Sleep(time.Second) // every server applies
			for _, s := range g.Servers() {
				stored := s.Store().Snapshot().Node("n1")
				must.SliceEmpty(t, stored.StoragePlugins)
				must.Zero(t, stored.VolumeAllowance+stored.HoldLimit)
			}
		}
		must.Len(t, 1, node.StoragePlugins, must.Sprint("the node is the caller's"))

		raiseTo(t, g, cluster.VersionOfVolumes)
		do(t, g, registerNode)
		do(t, g, writes["a volume"])
		do(t, g, writes["a job"])
		time.Sleep(time.Second)
		for _, s := range g.Servers() {
			claims := 0
			for c := range s.Store().Snapshot().WorkView().Claims() {
				must.Eq(t, cluster.NodeID("n1"), c.Node)
				claims++
			}
			must.Eq(t, 1, claims)
		}
	})
}

// raiseTo raises the cluster version step by step.
func raiseTo(t *testing.T, g *server.Group, to cluster.Version) {
	t.Helper()
	for v := g.Leader().Store().Snapshot().ClusterVersion() + 1; v <= to; v++ {
		write(t, g, server.Requests.RaiseVersion, v)
	}
}
