package cluster

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// VolumeType is the type of a volume.
type VolumeType string

// VolumeCSI is a volume of a storage plugin. Other types are refused.
const VolumeCSI VolumeType = "csi"

// VolumeRequest is a volume that each allocation of a group needs.
type VolumeRequest struct {
	// Name is the name by which tasks of the group refer to the volume.
	Name string
	Type VolumeType
	// Source is the id of the volume. With PerAlloc it is the start of the id: see
	// [VolumeRequest.VolumeOf].
	Source VolumeID
	// ReadOnly requests a claim that does not write.
	ReadOnly bool `codec:",omitempty"`
	// PerAlloc gives each allocation of the group a separate volume.
	PerAlloc bool `codec:",omitempty"`
	// Capability contains the modes in which the group uses the volume.
	Capability VolumeCapability
	// MountOptions are the mount options. Nil means the options of the volume.
	MountOptions *MountOptions `codec:",omitempty"`
}

func (r VolumeRequest) equal(o VolumeRequest) bool {
	options := r.MountOptions.Equal(o.MountOptions)
	r.MountOptions, o.MountOptions = nil, nil
	return options && r == o
}

// VolumeMount makes a volume of the group visible to a task.
type VolumeMount struct {
	// Volume is the name of a request of the group.
	Volume string
	// Destination is the path of the volume in the task.
	Destination string
	ReadOnly    bool `codec:",omitempty"`
	// Propagation is one of private, host-to-task and bidirectional, or empty for private.
	Propagation string `codec:",omitempty"`
}

// The values of [VolumeMount.Propagation].
const (
	PropagationPrivate       = "private"
	PropagationHostToTask    = "host-to-task"
	PropagationBidirectional = "bidirectional"
)

// Limits of the volumes of a job.
const (
	// MaxGroupVolumes is the largest number of requests of a group, and MaxTaskMounts is the
	// largest number of mounts of a task.
	MaxGroupVolumes = 32
	MaxTaskMounts   = 64
	// MaxMountPathBytes is the longest destination.
	MaxMountPathBytes = 1 << 10
)

// Mode is the mode of the claims of the request.
func (r VolumeRequest) Mode() ClaimMode {
	if r.ReadOnly {
		return ClaimRead
	}
	return ClaimWrite
}

// VolumeOf returns the volume for an allocation with this name: the source, and with PerAlloc also
// the index in the name, such as "data[2]" for "web.server[2]".
func (r VolumeRequest) VolumeOf(allocName string) VolumeID {
	if !r.PerAlloc {
		return r.Source
	}
	at := strings.LastIndexByte(allocName, '[')
	if at < 0 {
		return r.Source
	}
	return r.Source + VolumeID(allocName[at:])
}

// MayBe reports whether some allocation needs that volume for the request.
func (r VolumeRequest) MayBe(id VolumeID) bool { return r.mayBe(VolumeRequest{Source: id}) }

// mayBe reports whether both requests may need the same volume. For example, one has PerAlloc, and
// the other names the volume of one allocation.
func (r VolumeRequest) mayBe(o VolumeRequest) bool {
	if r.PerAlloc == o.PerAlloc {
		return r.Source == o.Source
	}
	if o.PerAlloc {
		r, o = o, r
	}
	index, found := strings.CutPrefix(string(o.Source), string(r.Source)+"[")
	index, closed := strings.CutSuffix(index, "]")
	return found && closed && index != "" && strings.Trim(index, "0123456789") == ""
}

// Equal reports whether both requests are equal.
func (r VolumeRequest) Equal(o VolumeRequest) bool {
	return r.Name == o.Name && r.Type == o.Type && r.Source == o.Source && r.ReadOnly == o.ReadOnly && r.PerAlloc == o.PerAlloc &&
		r.Capability == o.Capability && r.MountOptions.Equal(o.MountOptions)
}

func (r VolumeRequest) validate() error {
	var errs []error
	if err := CheckID(r.Name); err != nil {
		errs = append(errs, fmt.Errorf("Invalid name: %w", err))
	}
	if r.Type != VolumeCSI {
		errs = append(errs, fmt.Errorf("Invalid type: %q: only %q is supported", r.Type, VolumeCSI))
	}
	if err := CheckID(r.Source); err != nil {
		errs = append(errs, fmt.Errorf("Invalid source: %w", err))
	}
	if err := r.Capability.Validate(); err != nil {
		errs = append(errs, err)
	} else if !r.ReadOnly && !r.Capability.Access.Writes() {
		errs = append(errs, fmt.Errorf("Access mode %q needs a request that is read only", r.Capability.Access))
	}
	if r.MountOptions != nil && r.Capability.Attachment == AttachBlockDevice {
		errs = append(errs, errMountedBlock)
	}
	return errors.Join(append(errs, r.MountOptions.validate())...)
}

func (m VolumeMount) validate(g *TaskGroup) error {
	var errs []error
	if g.VolumeRequest(m.Volume) == nil {
		errs = append(errs, fmt.Errorf("the group has no volume %q", m.Volume))
	}
	switch {
	case m.Destination == "" || len(m.Destination) > MaxMountPathBytes:
		errs = append(errs, fmt.Errorf("Destination must have 1 to %d bytes", MaxMountPathBytes))
	case strings.ContainsRune(m.Destination, 0) || slices.Contains(strings.Split(m.Destination, "/"), ".."):
		errs = append(errs, errors.New("Invalid destination: it leaves the file system of the task"))
	}
	switch m.Propagation {
	case "", PropagationPrivate, PropagationHostToTask, PropagationBidirectional:
	default:
		errs = append(errs, fmt.Errorf("Invalid propagation mode: %q", m.Propagation))
	}
	return errors.Join(errs...)
}

// VolumeRequest returns the request with the name, or nil. For a nil group it returns nil.
func (g *TaskGroup) VolumeRequest(name string) *VolumeRequest {
	if g == nil {
		return nil
	}
	for i := range g.Volumes {
		if g.Volumes[i].Name == name {
			return &g.Volumes[i]
		}
	}
	return nil
}

// VolumeRequests are the volumes that the allocation needs, or nil.
func (a *Allocation) VolumeRequests() []VolumeRequest {
	g := a.Job.Group(a.TaskGroup)
	if g == nil {
		return nil
	}
	return g.Volumes
}

// validateVolumes checks the volumes of the group, and the mounts of its tasks.
func (g *TaskGroup) validateVolumes() (errs []error) {
	if len(g.Volumes) > MaxGroupVolumes {
		return []error{fmt.Errorf("A group has at most %d volumes but found %d", MaxGroupVolumes, len(g.Volumes))}
	}
	for i, r := range g.Volumes {
		if err := r.validate(); err != nil {
			errs = append(errs, withPlace(named("Volume", r.Name, i), err))
		}
		for _, o := range g.Volumes[:i] {
			if o.Name == r.Name {
				errs = append(errs, fmt.Errorf("Volume %q is defined twice", r.Name))
			} else if o.mayBe(r) {
				errs = append(errs, fmt.Errorf("Volumes %q and %q have the same source", o.Name, r.Name))
			}
		}
	}
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		if len(t.VolumeMounts) > MaxTaskMounts {
			errs = append(errs, fmt.Errorf("Task %q: at most %d volume mounts but found %d", t.Name, MaxTaskMounts, len(t.VolumeMounts)))
			continue
		}
		for i, m := range t.VolumeMounts {
			if err := m.validate(g); err != nil {
				errs = append(errs, withPlace(fmt.Sprintf("Task %q: Volume mount %d", t.Name, i), err))
			}
			at := path.Clean(m.Destination)
			if slices.ContainsFunc(t.VolumeMounts[:i], func(o VolumeMount) bool { return path.Clean(o.Destination) == at }) {
				errs = append(errs, fmt.Errorf("Task %q: two volume mounts have the destination %q", t.Name, at))
			}
		}
	}
	return errs
}

// UsesVolumes reports whether a group of the job requests volumes.
func (j *Job) UsesVolumes() bool {
	return slices.ContainsFunc(j.TaskGroups, func(g *TaskGroup) bool { return g != nil && len(g.Volumes) > 0 })
}

// WithoutCSIPlugins returns a copy of the job whose tasks are not storage plugins. Servers of an
// older cluster version store this copy.
func (j *Job) WithoutCSIPlugins() *Job {
	c := j.Copy()
	for _, g := range c.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t != nil {
				t.CSIPlugin = nil
			}
		}
	}
	return c
}

func (g *TaskGroup) usesVolumes() bool {
	return len(g.Volumes) > 0 || slices.ContainsFunc(g.Tasks, func(t *Task) bool {
		return t != nil && (len(t.VolumeMounts) > 0 || t.CSIPlugin != nil)
	})
}

// volumeBytes is the size of the group's volumes, for the size of the job.
func volumeBytes(g *TaskGroup) int {
	size := 0
	for _, r := range g.Volumes {
		size += len(r.Name) + len(r.Source) + r.MountOptions.bytes()
	}
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		for _, m := range t.VolumeMounts {
			size += len(m.Volume) + len(m.Destination)
		}
	}
	return size
}
