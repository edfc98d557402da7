package volume

import (
	"path"

	"github.com/seed-f9cf0b39/nodedrain/client/pathname"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Usage is the mode in which a volume is used. A volume is staged once for each usage.
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

// Request is the wish of an allocation for a volume.
type Request struct {
	Alloc  cluster.AllocID
	Volume cluster.VolumeKey
	Usage  Usage
	// Options say how the file system is mounted, or are nil for those of the volume. While a usage is
	// staged, requests with other options are refused.
	Options *cluster.MountOptions
}

// Claimed is what the servers answer to a claim.
type Claimed struct {
	// Plugin is the id of the storage plugin, and ExternalID the name by which it knows the volume.
	Plugin     cluster.PluginID
	ExternalID string
	// Options are those of the volume, for requests that have none, or nil.
	Options *cluster.MountOptions
	// PublishContext is what the controller has returned, or nil.
	PublishContext map[string]string
	// Context and Secrets are those of the volume's registration, or nil. Secrets are never written to
	// a record.
	Context, Secrets map[string]string
}

// StagePath is where a usage of a volume is staged, below the folder of all volumes.
func StagePath(root string, k cluster.VolumeKey, u Usage) string {
	return path.Join(root, "staging", pathname.Encode(string(k.Namespace)), pathname.Encode(string(k.ID)), u.name())
}

// TargetPath is where a volume is published for an allocation, below the folder of all volumes.
func TargetPath(root string, alloc cluster.AllocID, k cluster.VolumeKey, u Usage) string {
	return path.Join(root, "per-alloc", pathname.Encode(string(alloc)), pathname.Encode(string(k.ID)), u.name())
}
