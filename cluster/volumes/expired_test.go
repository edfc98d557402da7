package volumes_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// claims are claims of one allocation on one node.
type claims struct {
	all   []*cluster.VolumeClaim
	alloc *cluster.Allocation
	node  *cluster.Node
}

func (c claims) Claims() iter.Seq[*cluster.VolumeClaim]    { return slices.Values(c.all) }
func (c claims) Alloc(cluster.AllocID) *cluster.Allocation { return c.alloc }
func (c claims) Node(cluster.NodeID) *cluster.Node         { return c.node }
func claimIn(s cluster.ClaimState) *cluster.VolumeClaim {
	return &cluster.VolumeClaim{Node: "n1", State: s}
}
func lost() *cluster.Allocation { return &cluster.Allocation{ClientStatus: cluster.ClientLost} }
func down() *cluster.Node {
	return &cluster.Node{ID: "n1", Status: cluster.NodeDown, StatusChangedAt: epoch}
}

// Only claims that the node may still use are overdue, and the size of one update is limited.
func TestExpired(t *testing.T) {
	t.Parallel()
	one := claims{[]*cluster.VolumeClaim{claimIn(cluster.ClaimTaken), claimIn(cluster.ClaimNodeDetached), claimIn(cluster.ClaimUnpublishing)}, lost(), down()}
	must.Len(t, 2, volumes.Expired(one, epoch.Add(time.Second)))
	must.SliceEmpty(t, volumes.Expired(one, epoch.Add(-1)))
	one.node.Status = cluster.NodeReady
	must.SliceEmpty(t, volumes.Expired(one, epoch.Add(time.Second)))
	many := claims{slices.Repeat([]*cluster.VolumeClaim{claimIn(cluster.ClaimTaken)}, cluster.MaxClaimChanges+1), lost(), down()}
	must.Len(t, cluster.MaxClaimChanges, volumes.Expired(many, epoch.Add(time.Second)))
}
