package drain

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// What is still on a node after a drain follows from the claims. The allocation, or else the record of the drain,
// has the place and the reason.
func TestFollower_volumesLeft(t *testing.T) {
	t.Parallel()
	held := func(alloc, path, reason string) *wire.VolumeHolds {
		return &wire.VolumeHolds{Volumes: []wire.VolumeHold{{Namespace: "default", Volume: "data", AllocID: alloc, Path: path, Reason: reason}}}
	}
	claim := func(alloc, node string, state cluster.ClaimState) wire.VolumeClaim {
		return wire.VolumeClaim{Namespace: "default", Volume: "data", AllocID: alloc, NodeID: node, State: uint8(state), Waits: "the client reports more"}
	}
	busy := observed("a1 service stop complete")[0]
	busy.VolumeHolds = held("a1", "/mnt/a1", "busy:\nprocess 7 (tail)")
	system := observed("a4 system run running")[0]
	f := Follower{Node: "n1", SkipSystem: true, record: &wire.Drain{VolumesLeft: held("a2", "/mnt/a2", "its client is silent")}}
	f.updateAllocs([]*wire.Allocation{busy, system})
	lines := f.volumesLeft(&wire.Volume{ID: "data", Claims: []wire.VolumeClaim{
		claim("a1", "n1", cluster.ClaimUnpublishing), claim("a2", "n1", cluster.ClaimTaken), claim("a3", "n1", cluster.ClaimTaken),
		claim("a4", "n1", cluster.ClaimTaken), claim("a5", "n1", cluster.ClaimNodeDetached), claim("a6", "n2", cluster.ClaimTaken),
	}})
	must.Eq(t, []string{
		`Still on node "n1": volume data of allocation a1 at /mnt/a1: busy: process 7 (tail)`,
		`Still on node "n1": volume data of allocation a2 at /mnt/a2: its client is silent`,
		`Still on node "n1": volume data of allocation a3: the client reports more`,
	}, lines)
}
