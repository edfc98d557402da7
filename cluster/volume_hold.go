package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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
