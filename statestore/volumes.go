package statestore

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpsertVolume registers a volume, or changes a registered one. The error says what is wrong with
// the volume, or wraps [ErrVolumeInUse]: while claims exist, the plugin, the external id, the
// context, the parameters and the claimed modes cannot change, because the plugin is called with
// them until the volume is off all nodes. Secrets may change while a volume is in use.
func UpsertVolume(t *Txn, v *cluster.Volume, at time.Time) error {
	after := v.Copy()
	after.Canonicalize()
	if err := after.Validate(); err != nil {
		return err
	}
	at = at.UTC()
	before := t.Volume(after.Key())
	after.CreateTime, after.CreateIndex, after.ClaimsIndex = at, t.written.index, 0
	if before != nil {
		if err := mayChange(t, before, after); err != nil {
			return err
		}
		after.CreateTime, after.CreateIndex, after.ClaimsIndex = before.CreateTime, before.CreateIndex, before.ClaimsIndex
	}
	after.ModifyTime, after.ModifyIndex = at, t.written.index
	put(&t.rowWrites, TableVolumes, before, after)
	t.counters.Capacity = t.written.index
	return nil
}

// mayChange returns why a claim forbids the change of its volume, or nil.
func mayChange(t *Txn, before, after *cluster.Volume) error {
	for c := range t.ClaimsOfVolume(before.Key()) { // all claims have the same modes
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
func DeleteVolume(t *Txn, k cluster.VolumeKey, force bool) error {
	before := t.Volume(k)
	if before == nil {
		return ErrVolumeNotFound
	}
	claims := slices.Collect(t.ClaimsOfVolume(k))
	if len(claims) > 0 && !force {
		return fmt.Errorf("%w: %d allocations claim it, such as %s on node %s", ErrVolumeInUse, len(claims), claims[0].Alloc, claims[0].Node)
	}
	for _, c := range claims {
		claimEdits{&t.rowWrites}.put(c, nil)
	}
	put(&t.rowWrites, TableVolumes, t.Volume(k), nil) // its claims may have changed it
	return nil
}

// DetachVolume asks the node to unmount the volume from allocations that have ended or do not
// exist. With force it changes the claims as if the node had unmounted the volume, including claims
// of running allocations. These allocations get a mark to migrate, and are returned. When all
// claims wait for a controller, force deletes them. The error is [ErrClaimNotFound], or wraps
// [ErrVolumeInUse] and names a running allocation.
func DetachVolume(t *Txn, k cluster.VolumeKey, n cluster.NodeID, force bool, at time.Time) (stopped []cluster.AllocID, err error) {
	var claims []*cluster.VolumeClaim
	for c := range t.ClaimsOnNode(n) {
		if c.Volume == k {
			claims = append(claims, c)
		}
	}
	if len(claims) == 0 {
		return nil, ErrClaimNotFound
	}
	for _, c := range claims {
		a := t.Alloc(c.Alloc)
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
	edits := claimEdits{&t.rowWrites}
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
		if err := MigrateAlloc(t, id, at); err != nil {
			return nil, err
		}
	}
	return stopped, nil
}
