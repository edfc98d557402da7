package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// VolumeHolds are the volumes that an allocation still has on its node although it must stop or has
// stopped. They are shared and must not be changed.
type VolumeHolds struct {
	// Volumes are at most [MaxVolumeHolds] volumes, sorted by key and allocation.
	Volumes []VolumeHold
	// More is the number of other volumes.
	More int `codec:",omitempty"`
}

// VolumeHold is one volume that is still staged or published on a node, or is being unmounted.
type VolumeHold struct {
	Namespace Namespace
	Volume    VolumeID
	// Alloc is the allocation that used the volume. For a storage plugin it is another allocation.
	Alloc AllocID
	// Path is the busy mount target on the node, or empty.
	Path string `codec:",omitempty"`
	// Reason is what the client waits for: the next call, and the last error with the process
	// that uses the mount.
	Reason string `codec:",omitempty"`
	// Since is when the client started to unmount the volume.
	Since time.Time
}

// MaxVolumeHolds is the largest number of [VolumeHolds.Volumes]. [MaxTaskEventBytes] limits each
// text.
const MaxVolumeHolds = 16

// Count is how many volumes there are. Nil holds have none.
func (h *VolumeHolds) Count() int {
	if h == nil {
		return 0
	}
	return len(h.Volumes) + h.More
}

// Holds reports whether the volume of the claim is or may be among them. If More is not zero, every
// volume may be among them.
func (h *VolumeHolds) Holds(k ClaimKey) bool {
	return h != nil && (h.More > 0 || slices.ContainsFunc(h.Volumes, func(v VolumeHold) bool { return v.Key() == k }))
}

// Hold returns the volume of the claim, or false if it is not named.
func (h *VolumeHolds) Hold(k ClaimKey) (VolumeHold, bool) {
	if h != nil {
		for _, v := range h.Volumes {
			if v.Key() == k {
				return v, true
			}
		}
	}
	return VolumeHold{}, false
}

// WithoutReasons returns a copy without the reasons. Reasons repeat errors of plugins and command
// lines of processes, which may contain secrets. For nil it returns nil.
func (h *VolumeHolds) WithoutReasons() *VolumeHolds {
	c := h.Copy()
	if c != nil {
		for i := range c.Volumes {
			c.Volumes[i].Reason = ""
		}
	}
	return c
}

// Names returns one line that names up to most volumes and counts the others. It is empty if there
// are no volumes.
func (h *VolumeHolds) Names(most int) string {
	if h.Count() == 0 {
		return ""
	}
	var names []string
	for _, v := range h.Volumes[:min(most, len(h.Volumes))] {
		names = append(names, fmt.Sprintf("%s of allocation %s", v.Key().Volume, v.Alloc))
	}
	if more := h.Count() - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Key returns the key of the claim that the volume belongs to.
func (v VolumeHold) Key() ClaimKey {
	return ClaimKey{Volume: VolumeKey{Namespace: v.Namespace, ID: v.Volume}, Alloc: v.Alloc}
}

// Equal reports whether all fields are equal.
func (h *VolumeHolds) Equal(o *VolumeHolds) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.More == o.More && slices.EqualFunc(h.Volumes, o.Volumes, func(a, b VolumeHold) bool {
		return a.Key() == b.Key() && a.Path == b.Path && a.Reason == b.Reason && a.Since.Equal(b.Since)
	})
}

// Bounded returns the copy that the state of the cluster stores: sorted, without duplicates, and
// with shortened texts. It returns nil if there is no volume.
func (h *VolumeHolds) Bounded() *VolumeHolds {
	if h.Count() <= 0 {
		return nil
	}
	kept := &VolumeHolds{Volumes: slices.Clone(h.Volumes), More: max(0, h.More)}
	slices.SortStableFunc(kept.Volumes, func(a, b VolumeHold) int {
		return a.Key().Compare(b.Key())
	})
	kept.Volumes = slices.CompactFunc(kept.Volumes, func(a, b VolumeHold) bool { return a.Key() == b.Key() })
	if extra := len(kept.Volumes) - MaxVolumeHolds; extra > 0 {
		kept.Volumes, kept.More = slices.Clone(kept.Volumes[:MaxVolumeHolds]), kept.More+extra
	}
	for i := range kept.Volumes {
		v := &kept.Volumes[i]
		v.Namespace, v.Volume = Namespace(CutText(string(v.Namespace))), VolumeID(CutText(string(v.Volume)))
		v.Alloc, v.Path, v.Reason, v.Since = AllocID(CutText(string(v.Alloc))), CutText(v.Path), CutText(v.Reason), v.Since.UTC()
	}
	return kept
}

// Copy returns a copy that shares nothing with h.
func (h *VolumeHolds) Copy() *VolumeHolds {
	if h == nil {
		return nil
	}
	return &VolumeHolds{Volumes: slices.Clone(h.Volumes), More: h.More}
}
