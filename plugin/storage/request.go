package storage

import (
	"path"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// Usage is the way in which an allocation uses a volume. A volume is staged once for each usage.
type Usage struct {
	cluster.VolumeCapability
	ReadOnly bool
}

// name is the path element of the usage.
func (u Usage) name() string {
	mode := "rw-"
	if u.ReadOnly {
		mode = "ro-"
	}
	return pathname.Encode(mode + string(u.Attachment) + "-" + string(u.Access))
}

// Request is a request of an allocation for a volume.
type Request struct {
	Alloc  cluster.AllocID
	Volume cluster.VolumeKey
	Usage  Usage
	// Options are the mount options, or nil to use the options of the volume. While a usage is
	// staged, requests with different options are refused.
	Options *cluster.MountOptions
}

// Claimed is the answer of the servers to a claim.
type Claimed struct {
	// Plugin is the id of the storage plugin, and ExternalID is the id of the volume in the storage
	// plugin.
	Plugin     cluster.PluginID
	ExternalID string
	// Options are the mount options of the volume, for requests without options, or nil.
	Options *cluster.MountOptions
	// PublishContext is the answer of the controller, or nil.
	PublishContext map[string]string
	// Context and Secrets are from the registration of the volume, or nil. Secrets are never
	// written to a record.
	Context, Secrets map[string]string
}

// StageFolder is the folder of all staged volumes, below the folder of all volumes.
func StageFolder(root string) string { return path.Join(root, "staging") }

// StagePath is where a usage of a volume is staged, below the folder of all volumes.
func StagePath(root string, k cluster.VolumeKey, u Usage) string {
	return path.Join(StageFolder(root), pathname.Encode(string(k.Namespace)), pathname.Encode(string(k.ID)), u.name())
}

// TargetsFolder is the folder of all published volumes, below the folder of all volumes.
func TargetsFolder(root string) string { return path.Join(root, "per-alloc") }

// TargetPath is where a volume is published for an allocation, below the folder of all volumes. An
// allocation uses a volume in one way.
func TargetPath(root string, alloc cluster.AllocID, k cluster.VolumeKey, u Usage) string {
	return path.Join(TargetsFolder(root), pathname.Encode(string(alloc)), pathname.Encode(string(k.ID)), u.name())
}
