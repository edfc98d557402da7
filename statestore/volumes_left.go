package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// The reasons of volumes for which the client has reported no reason.
const (
	reasonRuns   = "its allocation has not ended"
	reasonSilent = "its client has not reported that it is off the node"
	reasonPurged = "its allocation was purged, and its client has not reported that it is off the node"
)

// volumesLeft returns the volumes that a drain leaves on its node when it ends, or nil: those of
// claims that are on the node, except of allocations that did not have to leave. The reason is the
// client's, if the client has reported one.
func volumesLeft(t *Txn, d *cluster.Drain) *cluster.VolumeHolds {
	left := &cluster.VolumeHolds{}
	for c := range t.ClaimsOnNode(d.NodeID) {
		a := t.Alloc(c.Alloc)
		switch {
		case !c.State.OnNode(), a != nil && !d.Leaves(a.Stage()):
			continue
		case len(left.Volumes) == cluster.MaxVolumeHolds:
			left.More++
			continue
		}
		left.Volumes = append(left.Volumes, volumeLeft(c, a))
	}
	return left.Bounded()
}

// volumeLeft says why the volume of a claim is still on its node. The allocation may be nil.
func volumeLeft(c *cluster.VolumeClaim, a *cluster.Allocation) cluster.VolumeHold {
	v := cluster.VolumeHold{Namespace: c.Volume.Namespace, Volume: c.Volume.ID, Alloc: c.Alloc, Reason: reasonPurged}
	if a == nil {
		return v
	}
	if held, named := a.VolumeHolds.Hold(c.Key()); named {
		return held
	}
	if v.Reason = reasonSilent; !a.ClientTerminal() {
		v.Reason = reasonRuns
	}
	return v
}
