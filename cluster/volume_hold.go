package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// VolumeHolds are the volumes that an allocation which must stop, or has stopped, has still on its node.
// They are shared and never written to.
type VolumeHolds struct {
	// Volumes are at most [MaxVolumeHolds], in the order of their keys and allocations.
	Volumes []VolumeHold
	// More is how many others there are.
	More int `codec:",omitempty"`
}

// VolumeHold is one volume that is still staged or published on a node, or on its way off it.
type VolumeHold struct {
	Namespace Namespace
	Volume    VolumeID
	// Alloc is the allocation that used the volume. A storage plugin is held by volumes of others.
	Alloc AllocID
	// Path is the busy mount target on the node, or empty.
	Path string `codec:",omitempty"`
	// Reason says what the client waits for: the step, and the last error with the process that keeps
	// the mount busy.
	Reason string `codec:",omitempty"`
	// Since is when the client began to take the volume off the node.
	Since time.Time
}

// MaxVolumeHolds bounds [VolumeHolds.Volumes]. [MaxTaskEventBytes] bounds each text.
const MaxVolumeHolds = 16

// Count is how many volumes there are. Nil holds have none.
func (h *VolumeHolds) Count() int {
	if h == nil {
		return 0
	}
	return len(h.Volumes) + h.More
}

// Holds reports whether the volume of the allocation is among them. If some are not named, each may be.
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

// WithoutReasons returns a copy without the reasons: they repeat errors of plugins and the commands of
// processes, which may hold secrets. Nil holds stay nil.
func (h *VolumeHolds) WithoutReasons() *VolumeHolds {
	c := h.Copy()
	if c != nil {
		for i := range c.Volumes {
			c.Volumes[i].Reason = ""
		}
	}
	return c
}

// Names names at most so many of the volumes in one line, and counts the others. It is empty if there
// are none.
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

// Equal reports whether both are the same in every field.
func (h *VolumeHolds) Equal(o *VolumeHolds) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.More == o.More && slices.EqualFunc(h.Volumes, o.Volumes, func(a, b VolumeHold) bool {
		return a.Key() == b.Key() && a.Path == b.Path && a.Reason == b.Reason && a.Since.Equal(b.Since)
	})
}

// Bounded returns a copy of what the state of the cluster keeps: sorted, without doubles, with bounded
// texts. It returns nil if no volume is left.
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
