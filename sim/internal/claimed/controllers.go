package claimed

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Called checks a new call. open are the calls before it that may still take effect, or whose
// leader waits for the answer. mounts are the mounts of the node to which or from which the volume
// moves.
func (j *Judge) Called(now time.Time, c world.ControllerCall, open []world.ControllerCall, mounts []double.Mount) {
	for _, o := range open {
		if o.Volume != c.Volume {
			continue
		}
		if o.Waits && o.Term == c.Term {
			j.report(now, CalledTwice, c.Node, "", "%s: the leader waits for the controller on %s", c.Volume, o.On)
		}
		if o.Node == c.Node && o.Detach != c.Detach && o.Reachable && o.On != c.On && c.Completes {
			j.report(now, Overtaken, c.Node, "", "%s: the controller on %s may still execute the opposite call", c.Volume, o.On)
		}
	}
	at := slices.IndexFunc(mounts, func(m double.Mount) bool { return m.Volume == c.Volume })
	if c.Detach && at >= 0 && !j.forced[c.Volume] && !j.left[place{c.Volume, c.Node}] {
		j.report(now, CalledEarly, c.Node, mounts[at].Alloc, "%s is at %s", c.Volume, mounts[at].Path)
	}
}

// Detached checks the claims that an entry frees because a controller has detached their volumes.
func (j *Judge) Detached(now time.Time, a shims.Applied, attachments []world.Attachment) {
	m, is := a.Message.(*shims.ClaimUpdate)
	if !is {
		return
	}
	for _, c := range m.Changes {
		if c.Cause != cluster.CauseDetached || a.Before.WorkView().Claim(c.Claim) == nil || a.After.WorkView().Claim(c.Claim) != nil || j.forced[c.Claim.Volume] {
			continue
		}
		if at := find(attachments, c.Claim.Volume, c.Node); at.Attached && !at.Astray {
			j.report(now, FreedHere, c.Node, c.Claim.Alloc, "%s", c.Claim.Volume)
		}
	}
}

// leftAttached checks that each attachment has a claim.
func (j *Judge) leftAttached(now time.Time, state *statestore.Snapshot, attachments []world.Attachment) {
	for _, at := range attachments {
		if !at.Attached || at.Astray || j.forced[at.Volume] {
			continue
		}
		claimed := false
		for c := range state.ClaimsOnNode(at.Node) {
			claimed = claimed || c.Volume == at.Volume
		}
		if !claimed {
			j.report(now, LeftAttached, at.Node, "", "%s", at.Volume)
		}
	}
}

// attached reports whether a volume is attached to a node, or whether calls that no leader could
// order may have detached it.
func attached(all []world.Attachment, k cluster.VolumeKey, node cluster.NodeID) bool {
	at := find(all, k, node)
	return at.Attached || at.Astray
}

func find(all []world.Attachment, k cluster.VolumeKey, node cluster.NodeID) world.Attachment {
	for _, at := range all {
		if at.Volume == k && at.Node == node {
			return at
		}
	}
	return world.Attachment{}
}
