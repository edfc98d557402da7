package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// left counts the reports of ends that name volumes.
func (o *Observer) left(m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		ended := r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed
		o.count(VolumesLeft, ended && r.VolumeHolds.Count() > 0)
	}
}

// freed counts the claims that the servers free on nodes that they do not reach, and those that wait for a
// controller.
func (o *Observer) freed(a shims.Applied, m *shims.ClaimUpdate) {
	for _, c := range m.Changes {
		before, after := a.Before.Claim(c.Claim), a.After.Claim(c.Claim)
		o.count(ClaimFreedAway, c.Cause == cluster.CauseUnreachable && before != nil && before.State.OnNode() && (after == nil || !after.State.OnNode()))
		o.count(ClaimController, c.Cause == cluster.CauseDetached && before != nil && after == nil)
	}
}

// forced counts the detaches that take a volume from an allocation that has not ended.
func (o *Observer) forced(a shims.Applied, m *shims.VolumeDetach) {
	for before := range a.Before.ClaimsOnNode(m.Node) {
		if before.Volume != m.Volume || !before.State.OnNode() {
			continue
		}
		after := a.After.Claim(before.Key())
		alloc := a.Before.Alloc(before.Alloc)
		o.count(ClaimForced, alloc != nil && !alloc.ClientTerminal() && (after == nil || !after.State.OnNode()))
	}
}
