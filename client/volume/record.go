package volume

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Record is what the node keeps on disk about one volume. It is enough to undo everything that the
// volume has left on the node.
type Record struct {
	Volume cluster.VolumeKey
	// BootID names the boot of the machine in which the record was written.
	BootID string
	// Plugin and ExternalID are empty until the first claim is answered.
	Plugin     cluster.PluginID
	ExternalID string
	Stages     []StageRecord
	// Refs are in the order in which the allocations came.
	Refs []RefRecord
}

// StageRecord is a usage that is staged, or may be.
type StageRecord struct {
	Usage Usage
	Phase StagePhase
	// Skipped: the plugin does not stage. No call was made.
	Skipped bool
	// Options are those of the stage, or nil for none. A volume has one stage for a usage, so that
	// allocations with other options cannot use it meanwhile.
	Options *cluster.MountOptions
}

// StagePhase is how far a usage of a volume is staged.
type StagePhase uint8

// The phases of a stage.
const (
	// Staging: the plugin was or will be asked to stage. The volume may be staged.
	Staging StagePhase = iota
	// Staged: the plugin has staged the volume.
	Staged
	// Unstaging: the plugin was or will be asked to unstage. The volume may be staged.
	Unstaging
)

// RefRecord is an allocation that wants the volume, or of which something is left.
type RefRecord struct {
	Alloc   cluster.AllocID
	Usage   Usage
	Options *cluster.MountOptions
	Phase   RefPhase
	// Leaving: the allocation does not want the volume any more.
	Leaving bool
}

// RefPhase is how far a volume is an allocation's.
type RefPhase uint8

// The phases of a reference.
const (
	// Claiming: the servers were or will be asked for the claim. They may have given it.
	Claiming RefPhase = iota
	// Held: the servers have given the claim, and nothing is published.
	Held
	// Publishing: the plugin was or will be asked to publish. The volume may be published.
	Publishing
	// Published: the plugin has published the volume.
	Published
	// Releasing: nothing is published, and the servers must take the claim back.
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
