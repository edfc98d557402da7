package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// While a cluster has an older server, a node registers without its unlisted allocations. After the last
// server is upgraded it registers again, and every server has them.
func TestServer_unlistedNeedEveryServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 3})
		node := testNode("n1")
		node.Unlisted = cluster.NewUnlistedAllocs([]cluster.AllocID{"old"})
		register := func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterNode(ctx, node)
			return err
		}
		do(t, g, register)
		for _, one := range []struct {
			version cluster.Version
			want    *cluster.UnlistedAllocs
		}{{cluster.VersionOfConfirmation - 1, nil}, {cluster.VersionOfConfirmation, node.Unlisted}} {
			raiseTo(t, g, one.version)
			do(t, g, register)
			time.Sleep(time.Second) // every server applies
			for _, s := range g.Servers() {
				must.Eq(t, one.want, s.Store().Snapshot().Node("n1").Unlisted)
			}
		}
		must.Eq(t, 1, node.Unlisted.Len(), must.Sprint("the node is the caller's"))
	})
}
