package statestore

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpsertVolume registers a volume, or changes a registered one. The error states what is wrong with
// the volume, or wraps [ErrVolumeInUse]: while claims exist, the plugin, the external id, the
// context, the parameters and the claimed modes cannot change, because the plugin is called with
// them until the volume is off all nodes. Secrets may change while a volume is in use.
func (t *Txn) UpsertVolume(v *cluster.Volume, at time.Time) error {
	after := v.Copy()
	after.Canonicalize()
	if err := after.Validate(); err != nil {
		return err
	}
	at = at.UTC()
	before := t.State().Volume(after.Key())
	after.CreateTime, after.CreateIndex, after.ClaimsIndex = at, t.rows.written.index, 0
	if before != nil {
		if err := mayChange(t, before, after); err != nil {
			return err
		}
		after.CreateTime, after.CreateIndex, after.ClaimsIndex = before.CreateTime, before.CreateIndex, before.ClaimsIndex
	}
	after.ModifyTime, after.ModifyIndex = at, t.rows.written.index
	put(&t.rows, TableVolumes, before, after)
	t.rows.counters.Capacity = t.rows.written.index
	return nil
}

// mayChange returns why a claim forbids the change of its volume, or nil.
func mayChange(t *Txn, before, after *cluster.Volume) error {
	for c := range t.State().ClaimsOfVolume(before.Key()) { // all claims have the same modes
		if before.Plugin != after.Plugin || before.ExternalID != after.ExternalID || !after.Allows(c.Capability) ||
			!maps.Equal(before.Context, after.Context) || !maps.Equal(before.Parameters, after.Parameters) {
			return fmt.Errorf("%w: allocation %s claims it, and its plugin, external id, context, parameters and used modes cannot change", ErrVolumeInUse, c.Alloc)
		}
		return nil
	}
	return nil
}

// DeleteVolume deletes a volume. With force it also deletes the claims, and the servers no longer
// detach the volume from nodes and controllers. The error is [ErrVolumeNotFound], or wraps
// [ErrVolumeInUse].
func (t *Txn) DeleteVolume(k cluster.VolumeKey, force bool) error {
	before := t.State().Volume(k)
	if before == nil {
		return ErrVolumeNotFound
	}
	claims := slices.Collect(t.State().ClaimsOfVolume(k))
	if len(claims) > 0 && !force {
		return fmt.Errorf("%w: %d allocations claim it, such as %s on node %s", ErrVolumeInUse, len(claims), claims[0].Alloc, claims[0].Node)
	}
	for _, c := range claims {
		claimEdits{&t.rows}.put(c, nil)
	}
	put(&t.rows, TableVolumes, t.State().Volume(k), nil) // its claims may have changed it
	return nil
}

// DetachVolume requests that the node unmounts the volume of allocations that have ended or do not
// exist. With force it changes the claims as if the node had unmounted the volume, including claims
// of running allocations. These allocations get a mark to migrate, and are returned. When all
// claims wait for a controller, force deletes them. The error is [ErrClaimNotFound], or wraps
// [ErrVolumeInUse] and names a running allocation.
func (t *Txn) DetachVolume(k cluster.VolumeKey, n cluster.NodeID, force bool, at time.Time) (stopped []cluster.AllocID, err error) {
	var claims []*cluster.VolumeClaim
	for c := range t.State().ClaimsOnNode(n) {
		if c.Volume == k {
			claims = append(claims, c)
		}
	}
	if len(claims) == 0 {
		return nil, ErrClaimNotFound
	}
	for _, c := range claims {
		a := t.State().Alloc(c.Alloc)
		if !c.State.OnNode() || a == nil || a.ClientTerminal() {
			continue
		}
		if !force && a.ServerTerminal() {
			return nil, fmt.Errorf("%w: allocation %s is stopping: its node unmounts the volume after the tasks", ErrVolumeInUse, c.Alloc)
		}
		if !force {
			return nil, fmt.Errorf("%w: allocation %s has not ended: stop it first", ErrVolumeInUse, c.Alloc)
		}
		if !a.Leaving() {
			stopped = append(stopped, c.Alloc)
		}
	}
	waiting := !slices.ContainsFunc(claims, func(c *cluster.VolumeClaim) bool { return c.State.OnNode() })
	edits := claimEdits{&t.rows}
	for _, c := range claims {
		switch {
		case !force:
			edits.advance(c, cluster.ClaimUnpublishing)
		case waiting:
			edits.put(c, nil)
		default:
			edits.advance(c, cluster.ClaimNodeDetached)
		}
	}
	for _, id := range stopped {
		if err := t.MigrateAlloc(id, at); err != nil {
			return nil, err
		}
	}
	return stopped, nil
}

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
	for c := range t.State().ClaimsOnNode(d.NodeID) {
		a := t.State().Alloc(c.Alloc)
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

// volumeLeft returns why the volume of a claim is still on its node. The allocation may be nil.
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
