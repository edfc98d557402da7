package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"time"
)

// VolumeClaim is the right of one allocation to use a volume. The plan that places the allocation
// creates it. It exists until the volume is certainly off the allocation's node. The state has a
// separate table of claims.
type VolumeClaim struct {
	Volume VolumeKey
	Alloc  AllocID
	// Node is the allocation's node.
	Node NodeID
	Mode ClaimMode
	// Capability contains the modes in which the allocation uses the volume.
	Capability VolumeCapability
	// State is the progress of the release of the claim.
	State ClaimState `codec:",omitempty"`
	// Controller means that a controller must attach the volume to the node, and detach it at the
	// end.
	Controller bool `codec:",omitempty"`
	// Attached means that a controller has attached the volume. The node waits for that.
	// PublishContext is the answer of the controller, for the node's calls, or nil.
	Attached       bool              `codec:",omitempty"`
	PublishContext map[string]string `codec:",omitempty"`
	// ExternalNodeID is the id of the node in the storage plugin when the claim was made. A
	// controller uses it to detach the volume, also when the node's row is deleted.
	ExternalNodeID string `codec:",omitempty"`
	// NodeGoneAt is when the row of the node was deleted while the node might use the volume, or
	// zero. After that the servers answer no heartbeat of the node, unless it registers again.
	NodeGoneAt time.Time `codec:",omitempty"`
	// NodeStopTime is the stop time of the allocation on the deleted node, see
	// [Allocation.StopTimeOn]. It is zero without NodeGoneAt.
	NodeStopTime time.Duration `codec:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
}

// ClaimMode is whether a claim may write.
type ClaimMode string

// The values of [ClaimMode].
const (
	ClaimRead  ClaimMode = "read"
	ClaimWrite ClaimMode = "write"
)

// Valid reports whether m is one of the two values.
func (m ClaimMode) Valid() bool { return m == ClaimRead || m == ClaimWrite }

// ClaimState is the progress of the release of a claim. The numbers are those of the compatible
// API.
type ClaimState uint8

// The values of [ClaimState].
const (
	// ClaimTaken: the volume is or will be mounted on the node.
	ClaimTaken ClaimState = 0
	// ClaimNodeDetached: the node does not use the volume any more.
	ClaimNodeDetached ClaimState = 1
	// ClaimControllerDetached: a controller has detached the volume from the node.
	ClaimControllerDetached ClaimState = 2
	// ClaimReadyToFree: nothing is left to do. The state never contains a claim with this value.
	ClaimReadyToFree ClaimState = 3
	// ClaimUnpublishing: the node must unmount the volume, because the allocation has ended or an
	// operator detaches the volume.
	ClaimUnpublishing ClaimState = 4
)

// Valid reports whether s is one of the five values.
func (s ClaimState) Valid() bool { return s <= ClaimUnpublishing }

// step is the position of a state in the order of a release.
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

// Before reports whether s comes before o in a release.
func (s ClaimState) Before(o ClaimState) bool { return s.step() < o.step() }

// OnNode reports whether the node may still use the volume.
func (s ClaimState) OnNode() bool { return s == ClaimTaken || s == ClaimUnpublishing }

// String returns the name of the state for operators.
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

// MaxPublishContextBytes is the largest total size of the keys and values of
// [VolumeClaim.PublishContext].
const MaxPublishContextBytes = 16 << 10

// CheckPublishContext returns an error if a controller's answer is not valid.
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

// ClaimUpdate is a raft entry that changes claims.
type ClaimUpdate struct {
	// At is the proposer's time.
	At      time.Time
	Changes []ClaimChange
}

// ClaimChange is a change of one claim.
type ClaimChange struct {
	Claim ClaimKey
	// Node is the node of the claim. A change with another node is ignored.
	Node  NodeID
	Cause ClaimCause
	// PublishContext is the answer of a controller that has attached the volume, or nil.
	PublishContext map[string]string `codec:",omitempty"`
}

// ClaimCause is the reason why a claim changes.
type ClaimCause string

// The values of [ClaimCause].
const (
	// CauseAttached: a controller has attached the volume to the node.
	CauseAttached ClaimCause = "attached"
	// CauseNode: the client has unmounted the volume for the allocation.
	CauseNode ClaimCause = "node"
	// CauseUnreachable: the servers cannot reach the node, and its client must have stopped the
	// allocation by now. The FSM checks this again when it applies the change.
	CauseUnreachable ClaimCause = "unreachable"
	// CauseDetached: a controller has detached the volume from the node.
	CauseDetached ClaimCause = "detached"
)

// Valid reports whether c is one of the four values.
func (c ClaimCause) Valid() bool {
	return c == CauseAttached || c == CauseNode || c == CauseUnreachable || c == CauseDetached
}

// MaxClaimChanges is the largest number of changes in one update.
const MaxClaimChanges = 1000

// ClaimRefusal is the reason why a change of a claim was not applied.
type ClaimRefusal struct {
	Claim ClaimKey
	Why   string
}
