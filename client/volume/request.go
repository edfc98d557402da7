package volume

import (
	"path/filepath"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/pathname"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Key names a volume.
type Key struct {
	Namespace cluster.Namespace
	ID        string
}

// String returns "namespace/id".
func (k Key) String() string { return string(k.Namespace) + "/" + k.ID }

func (k Key) compare(o Key) int {
	if c := strings.Compare(string(k.Namespace), string(o.Namespace)); c != 0 {
		return c
	}
	return strings.Compare(k.ID, o.ID)
}

// Usage is the mode in which a volume is used. A volume is staged once for each usage.
type Usage struct {
	// Attachment is "file-system" or "block-device".
	Attachment string
	// Access is the access mode, such as "single-node-writer".
	Access   string
	ReadOnly bool
}

// name is the path element of the usage.
func (u Usage) name() string {
	mode := "rw-"
	if u.ReadOnly {
		mode = "ro-"
	}
	return pathname.Encode(mode + u.Attachment + "-" + u.Access)
}

// Request is the wish of an allocation for a volume.
type Request struct {
	Alloc  cluster.AllocID
	Volume Key
	Usage  Usage
	// FSType and Flags are the options of the mount, or empty. A usage is staged with those of the
	// first request.
	FSType string
	Flags  []string
}

// Claimed is what the servers answer to a claim.
type Claimed struct {
	// Plugin is the id of the storage plugin, and ExternalID the name by which it knows the volume.
	Plugin, ExternalID string
	// PublishContext is what the controller has returned, or nil.
	PublishContext map[string]string
	// Context and Secrets are those of the volume's registration, or nil. Secrets are never written to
	// a record.
	Context, Secrets map[string]string
}

// StagePath is where a usage of a volume is staged, below the folder of all volumes.
func StagePath(root string, k Key, u Usage) string {
	return filepath.Join(root, "staging", pathname.Encode(string(k.Namespace)), pathname.Encode(k.ID), u.name())
}

// TargetPath is where a volume is published for an allocation, below the folder of all volumes.
func TargetPath(root string, alloc cluster.AllocID, k Key, u Usage) string {
	return filepath.Join(root, "per-alloc", pathname.Encode(string(alloc)), pathname.Encode(k.ID), u.name())
}
