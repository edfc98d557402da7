package volume

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Record is the state of one volume on disk. It contains everything that is needed to undo the
// calls of the volume on the node.
type Record struct {
	Volume cluster.VolumeKey
	// BootID names the boot of the machine in which the record was written.
	BootID string
	// Plugin and ExternalID are empty until the first claim is answered.
	Plugin     cluster.PluginID
	ExternalID string
	Stages     []StageRecord
	// Refs are in the order in which the allocations requested the volume.
	Refs []RefRecord
}

// StageRecord describes a usage that is or may be staged.
type StageRecord struct {
	Usage storage.Usage
	Phase StagePhase
	// Skipped: the plugin does not stage. No call was made.
	Skipped bool
	// Options are the mount options of the stage, or nil for none. A volume has at most one stage
	// for each usage, so an allocation with different options cannot use the volume meanwhile.
	Options *cluster.MountOptions
	// Open: the volume is not staged with Options, or the options are unknown. The next reference
	// decides the options.
	Open bool
	// Adopted: the mount was found without a record, so its options are unknown.
	Adopted bool
}

// StagePhase is the state of a stage.
type StagePhase uint8

// The phases of a stage.
const (
	// Staging: a stage call was or will be made. The volume may be staged.
	Staging StagePhase = iota
	// Staged: the plugin has staged the volume.
	Staged
	// Unstaging: an unstage call was or will be made. The volume may be staged.
	Unstaging
)

// RefRecord describes an allocation that uses the volume, or has used it and has left something to
// undo.
type RefRecord struct {
	Alloc   cluster.AllocID
	Usage   storage.Usage
	Options *cluster.MountOptions
	Phase   RefPhase
	// Leaving: the allocation no longer uses the volume.
	Leaving bool
	// Adopted: a stage was found without a record. It may be for the allocation, for which the
	// volume is not published. The phase is Publishing anyway until the servers name the plugin.
	Adopted bool
}

// RefPhase is the state of a reference.
type RefPhase uint8

// The phases of a reference.
const (
	// Claiming: a request for the claim was or will be sent. The servers may have granted the
	// claim.
	Claiming RefPhase = iota
	// Held: the servers have granted the claim, and the volume is not published.
	Held
	// Publishing: a publish call was or will be made. The volume may be published.
	Publishing
	// Published: the plugin has published the volume.
	Published
	// Releasing: the volume is not published, and the claim must be released.
	Releasing
)

// mounted reports whether the volume may be published for the reference.
func (p RefPhase) mounted() bool { return p == Publishing || p == Published }

func (r *StageRecord) copy() StageRecord {
	c := *r
	c.Options = r.Options.Copy()
	return c
}

func (r *RefRecord) copy() RefRecord {
	c := *r
	c.Options = r.Options.Copy()
	return c
}
