package wire

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// VolumeRequest is a volume that each allocation of a group needs.
type VolumeRequest struct {
	// Name is the key in the group's map, or empty.
	Name string
	// Type is csi.
	Type     string
	Source   string
	ReadOnly bool
	// PerAlloc gives each allocation the volume "Source[index]".
	PerAlloc       bool
	AccessMode     string
	AttachmentMode string
	MountOptions   *MountOptions `json:",omitempty"`
}

// VolumeMount shows a volume of the group to a task. A nil field is empty.
type VolumeMount struct {
	Volume          *string
	Destination     *string
	ReadOnly        *bool
	PropagationMode *string
	// SELinuxLabel is not read, and empty in an answer.
	SELinuxLabel *string `json:",omitempty"`
}

// CSIPlugin makes a task a storage plugin.
type CSIPlugin struct {
	ID string
	// Type is node, controller or monolith. Without a type the task is a storage plugin only to drains.
	Type                string `json:",omitempty"`
	MountDir            string `json:",omitempty"`
	StagePublishBaseDir string `json:",omitempty"`
	// HealthTimeout is in nanoseconds.
	HealthTimeout time.Duration `json:",omitempty"`
}

// VolumeHolds are the volumes that an allocation which must stop, or has stopped, has still on its
// node. Ours.
type VolumeHolds struct {
	Volumes []VolumeHold
	// More is how many others there are.
	More int `json:",omitempty"`
}

// VolumeHold is one volume that is still on a node, or on its way off it.
type VolumeHold struct {
	Namespace string
	Volume    string
	// AllocID is the allocation that used the volume.
	AllocID string
	// Path is the busy mount target, or empty. Reason is what the client waits for.
	Path   string
	Reason string
	Since  Time
}

func (w *VolumeHolds) holds() *cluster.VolumeHolds {
	if w == nil {
		return nil
	}
	h := &cluster.VolumeHolds{More: w.More}
	for _, v := range w.Volumes {
		h.Volumes = append(h.Volumes, cluster.VolumeHold{
			Namespace: cluster.Namespace(v.Namespace), Volume: cluster.VolumeID(v.Volume), Alloc: cluster.AllocID(v.AllocID),
			Path: v.Path, Reason: v.Reason, Since: v.Since.Time,
		})
	}
	return h
}

func newVolumeHolds(h *cluster.VolumeHolds) *VolumeHolds {
	if h == nil {
		return nil
	}
	w := &VolumeHolds{More: h.More, Volumes: make([]VolumeHold, len(h.Volumes))}
	for i, v := range h.Volumes {
		w.Volumes[i] = VolumeHold{
			Namespace: string(v.Namespace), Volume: string(v.Volume), AllocID: string(v.Alloc), Path: v.Path, Reason: v.Reason, Since: NewTime(v.Since),
		}
	}
	return w
}

// volumesOf are the requests of a group, in the order of their names.
func volumesOf(requests map[string]*VolumeRequest) (list []cluster.VolumeRequest, err error) {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		w := requests[name]
		switch {
		case w == nil:
			return nil, fmt.Errorf("Volume %q is missing", name)
		case w.Name != "" && w.Name != name:
			return nil, fmt.Errorf("Volume %q has another name: %q", name, w.Name)
		}
		r := cluster.VolumeRequest{
			Name: name, Type: cluster.VolumeType(w.Type), Source: cluster.VolumeID(w.Source), ReadOnly: w.ReadOnly, PerAlloc: w.PerAlloc,
			Capability: VolumeCapability{w.AccessMode, w.AttachmentMode}.capability(), MountOptions: w.MountOptions.options(),
		}
		if r.Capability.Attachment == "" {
			r.Capability.Attachment = cluster.AttachFileSystem
		}
		list = append(list, r)
	}
	return list, nil
}

func newVolumeRequests(requests []cluster.VolumeRequest) map[string]*VolumeRequest {
	if len(requests) == 0 {
		return nil
	}
	w := make(map[string]*VolumeRequest, len(requests))
	for _, r := range requests {
		w[r.Name] = &VolumeRequest{
			Name: r.Name, Type: string(r.Type), Source: string(r.Source), ReadOnly: r.ReadOnly, PerAlloc: r.PerAlloc,
			AccessMode: string(r.Capability.Access), AttachmentMode: string(r.Capability.Attachment), MountOptions: newMountOptions(r.MountOptions),
		}
	}
	return w
}

func mountsOf(mounts []*VolumeMount) (list []cluster.VolumeMount, err error) {
	for i, w := range mounts {
		if w == nil {
			return nil, fmt.Errorf("Volume mount %d is missing", i)
		}
		list = append(list, cluster.VolumeMount{
			Volume: orZero(w.Volume), Destination: orZero(w.Destination), ReadOnly: orZero(w.ReadOnly), Propagation: orZero(w.PropagationMode),
		})
	}
	return list, nil
}

func newVolumeMounts(mounts []cluster.VolumeMount) []*VolumeMount {
	var list []*VolumeMount
	for _, m := range mounts {
		list = append(list, &VolumeMount{
			Volume: new(m.Volume), Destination: new(m.Destination), ReadOnly: new(m.ReadOnly), PropagationMode: new(m.Propagation), SELinuxLabel: new(""),
		})
	}
	return list
}

// plugin is nil for a block without a type, as clients of older versions sent it.
func (w *CSIPlugin) plugin() *cluster.CSIPlugin {
	if w == nil || w.Type == "" {
		return nil
	}
	return &cluster.CSIPlugin{
		ID: cluster.PluginID(w.ID), Type: cluster.PluginType(w.Type), MountDir: w.MountDir,
		StagePublishBaseDir: w.StagePublishBaseDir, HealthTimeout: w.HealthTimeout,
	}
}

// newCSIPlugin is the block of a storage plugin. One of a simulated client has no block of its own,
// and gets the name of the task.
func newCSIPlugin(t *cluster.Task) *CSIPlugin {
	switch p := t.CSIPlugin; {
	case p != nil:
		return &CSIPlugin{
			ID: string(p.ID), Type: string(p.Type), MountDir: p.MountDir, StagePublishBaseDir: p.StagePublishBaseDir, HealthTimeout: p.HealthTimeout,
		}
	case t.StoragePlugin:
		return &CSIPlugin{ID: t.Name}
	}
	return nil
}
