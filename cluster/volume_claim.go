package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"time"
)

// VolumeClaim is the right of one allocation to use a volume. It exists from the plan that places the
// allocation until the volume has surely left the allocation's node. The state keeps claims beside
// their volumes.
type VolumeClaim struct {
	Volume VolumeKey
	Alloc  AllocID
	// Node is the allocation's node.
	Node NodeID
	Mode ClaimMode
	// Capability are the modes in which the volume is used.
	Capability VolumeCapability
	// State is how far the release of the claim has come.
	State ClaimState `codec:",omitempty"`
	// Controller says that a controller attaches the volume to the node, so that one must detach it.
	Controller bool `codec:",omitempty"`
	// Attached says that a controller has attached the volume. PublishContext is its answer, for the
	// node's calls, or nil. The node waits for it.
	Attached       bool              `codec:",omitempty"`
	PublishContext map[string]string `codec:",omitempty"`
	// ExternalNodeID is what the plugin called the node when the claim was made. A controller detaches
	// by it, also when the node is gone.
	ExternalNodeID string `codec:",omitempty"`
	// NodeGoneAt is when the row of the node was deleted while the node might use the volume, or zero.
	// The servers have answered no heartbeat of the node after that, unless it has registered again.
	NodeGoneAt time.Time `codec:",omitempty"`
	// NodeStopTime is how long the allocation could take to stop on the deleted node, see
	// [Allocation.StopTimeOn]. Zero without NodeGoneAt.
	NodeStopTime time.Duration `codec:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
}

// ClaimMode says whether a claim may write.
type ClaimMode string

// The values of [ClaimMode].
const (
	ClaimRead  ClaimMode = "read"
	ClaimWrite ClaimMode = "write"
)

// Valid reports whether m is one of the two values.
func (m ClaimMode) Valid() bool { return m == ClaimRead || m == ClaimWrite }

// ClaimState is how far the release of a claim has come. The numbers are those of the compatible API.
type ClaimState uint8

// The values of [ClaimState].
const (
	// ClaimTaken: the volume is on the node, or comes to it.
	ClaimTaken ClaimState = 0
	// ClaimNodeDetached: the node uses the volume no more.
	ClaimNodeDetached ClaimState = 1
	// ClaimControllerDetached: a controller has detached the volume from the node.
	ClaimControllerDetached ClaimState = 2
	// ClaimReadyToFree: nothing is left to do. The state keeps no claim in this state.
	ClaimReadyToFree ClaimState = 3
	// ClaimUnpublishing: the node is asked to unmount, because the allocation has ended or an operator
	// detaches the volume.
	ClaimUnpublishing ClaimState = 4
)

// Valid reports whether s is one of the five values.
func (s ClaimState) Valid() bool { return s <= ClaimUnpublishing }

// step orders the states as a release passes them.
func (s ClaimState) step() int {
	switch s {
	case ClaimTaken:
		return 0
	case ClaimUnpublishing:
		return 1
	case ClaimNodeDetached:
		return 2
	case ClaimControllerDetached:
		return 3
	}
	return 4
}

// Before reports whether a release passes s before it comes to o.
func (s ClaimState) Before(o ClaimState) bool { return s.step() < o.step() }

// OnNode reports whether the node may still use the volume.
func (s ClaimState) OnNode() bool { return s == ClaimTaken || s == ClaimUnpublishing }

// String returns the state's name as operators read it.
func (s ClaimState) String() string {
	switch s {
	case ClaimTaken:
		return "taken"
	case ClaimNodeDetached:
		return "node detached"
	case ClaimControllerDetached:
		return "controller detached"
	case ClaimReadyToFree:
		return "ready to free"
	case ClaimUnpublishing:
		return "unpublishing"
	}
	return "unknown state"
}

// MaxPublishContextBytes bounds the keys and values of [VolumeClaim.PublishContext] together.
const MaxPublishContextBytes = 16 << 10

// CheckPublishContext returns what is wrong with a controller's answer, or nil.
func CheckPublishContext(context map[string]string) error {
	if err := checkMap("PublishContext", context); err != nil {
		return err
	}
	if size := mapBytes(context); size > MaxPublishContextBytes {
		return fmt.Errorf("PublishContext has at most %d bytes but found %d", MaxPublishContextBytes, size)
	}
	return nil
}

// Key returns the claim's key.
func (c *VolumeClaim) Key() ClaimKey { return ClaimKey{Volume: c.Volume, Alloc: c.Alloc} }

// WaitsForController reports whether the node must wait until a controller has attached the volume.
func (c *VolumeClaim) WaitsForController() bool { return c.Controller && !c.Attached }

// Writes reports whether the claim may write.
func (c *VolumeClaim) Writes() bool { return c.Mode == ClaimWrite }

// Copy returns a copy that shares nothing with c.
func (c *VolumeClaim) Copy() *VolumeClaim {
	if c == nil {
		return nil
	}
	o := *c
	o.PublishContext = maps.Clone(c.PublishContext)
	return &o
}

// ClaimKey names a claim. An allocation has at most one claim on a volume.
type ClaimKey struct {
	Volume VolumeKey
	Alloc  AllocID
}

// String returns "namespace/volume for allocation".
func (k ClaimKey) String() string { return fmt.Sprintf("%s for %s", k.Volume, k.Alloc) }

// Compare orders keys by volume, then allocation.
func (k ClaimKey) Compare(o ClaimKey) int {
	return cmp.Or(k.Volume.Compare(o.Volume), cmp.Compare(k.Alloc, o.Alloc))
}
