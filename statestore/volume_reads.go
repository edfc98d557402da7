package statestore

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

var _ rules.VolumeView = volumeReads{}

// volumeReads reads volumes and their claims.
type volumeReads struct{ *tables }

// Volume returns the volume, or nil.
func (r volumeReads) Volume(k cluster.VolumeKey) *cluster.Volume {
	return first[cluster.Volume](r.tables, TableVolumes, indexID, volumeKey(k))
}

// Volumes yields all volumes by namespace and id.
func (r volumeReads) Volumes() iter.Seq[*cluster.Volume] {
	return scan[cluster.Volume](r.tables, TableVolumes, indexID, nil)
}

// Claim returns the claim, or nil.
func (r volumeReads) Claim(k cluster.ClaimKey) *cluster.VolumeClaim {
	return first[cluster.VolumeClaim](r.tables, TableClaims, indexID, claimKey(k))
}

// Claims yields all claims by volume and allocation.
func (r volumeReads) Claims() iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](r.tables, TableClaims, indexID, nil)
}

// ClaimsOfVolume yields the claims of the volume: those that write first, then by allocation. The
// volume need not exist.
func (r volumeReads) ClaimsOfVolume(k cluster.VolumeKey) iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](r.tables, TableClaims, indexLists, claimsOfVolume(k))
}

// ClaimsOnNode yields the claims of allocations on the node, by volume and allocation. The node may
// be deleted.
func (r volumeReads) ClaimsOnNode(n cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](r.tables, TableClaims, indexLists, inList(listClaimNode, n))
}

// VolumePlugins yields the storage plugins of the volumes that the allocation has claimed and that
// may be on its node, for [rules.VolumeView].
func (r volumeReads) VolumePlugins(a cluster.AllocID) iter.Seq[cluster.PluginID] {
	return func(yield func(cluster.PluginID) bool) {
		for c := range r.ClaimsOfAlloc(a) {
			if !c.State.OnNode() {
				continue
			}
			if v := r.Volume(c.Volume); v != nil && !yield(v.Plugin) {
				return
			}
		}
	}
}

// ClaimsOfAlloc yields the claims of the allocation, by volume. The allocation need not exist.
func (r volumeReads) ClaimsOfAlloc(a cluster.AllocID) iter.Seq[*cluster.VolumeClaim] {
	return scan[cluster.VolumeClaim](r.tables, TableClaims, indexLists, inList(listClaimAlloc, a))
}
