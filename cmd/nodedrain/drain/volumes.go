package drain

import (
	"cmp"
	"context"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// VolumesLeft returns a line for each volume that had to leave the node and is still there. It works after
// [monitor.Run]. The record of the drain has those of the drain's end. The allocations have stopped since, and
// their volumes may have left the node: the claims have the answer.
func (m *Monitor) VolumesLeft(ctx context.Context) (lines []string, err error) {
	if r := m.Follow.record; r == nil || r.VolumesLeft == nil {
		return nil, nil
	}
	stubs, _, err := cli.Retry(ctx, &m.Contact, func() ([]*wire.VolumeListStub, client.Answer, error) {
		return m.API.Volumes().OnNode(ctx, cluster.NodeID(m.Follow.Node))
	})
	for i := 0; err == nil && i < len(stubs); i++ {
		var v *wire.Volume
		v, _, err = cli.Retry(ctx, &m.Contact, func() (*wire.Volume, client.Answer, error) {
			return m.API.Volumes().Read(ctx, stubs[i].ID, client.Query{Namespace: stubs[i].Namespace})
		})
		switch {
		case err == nil:
			lines = append(lines, m.Follow.volumesLeft(v)...)
		case client.NotFound(err): // it was deregistered by force
			err = nil
		}
	}
	return lines, err
}

// volumesLeft returns a line for each claim of the volume that is still on the node, except those of
// allocations that stay there.
func (f *Follower) volumesLeft(v *wire.Volume) (lines []string) {
	for _, c := range v.Claims {
		a := f.allocs[c.AllocID]
		if c.NodeID != f.Node || !cluster.ClaimState(c.State).OnNode() || a != nil && alloc.Alive(a) && f.Stays(a) {
			continue
		}
		left := wire.VolumeHold{Namespace: c.Namespace, Volume: c.Volume, AllocID: c.AllocID}
		if a != nil && a.VolumeHolds != nil {
			left = heldBy(a.VolumeHolds, left)
		}
		left = heldBy(f.record.VolumesLeft, left)
		left.Reason = cmp.Or(left.Reason, c.Waits)
		lines = append(lines, cli.SingleLine(fmt.Sprintf("Still on node %q: %s", f.Node, volumeText(left))))
	}
	return lines
}

// heldBy adds the path and the reason of the volume, if the holds name it.
func heldBy(holds *wire.VolumeHolds, left wire.VolumeHold) wire.VolumeHold {
	for _, h := range holds.Volumes {
		if h.Namespace == left.Namespace && h.Volume == left.Volume && h.AllocID == left.AllocID {
			left.Path, left.Reason = cmp.Or(left.Path, h.Path), cmp.Or(left.Reason, h.Reason)
		}
	}
	return left
}
