package volume

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Identity describes how a storage plugin names a volume.
type Identity struct {
	Volume     cluster.VolumeKey
	Plugin     cluster.PluginID
	ExternalID string
}
