package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// VolumeID names a volume within its namespace.
type VolumeID string

// VolumeKey names a volume.
type VolumeKey struct {
	Namespace Namespace
	ID        VolumeID
}

// String returns "namespace/id".
func (k VolumeKey) String() string { return fmt.Sprintf("%s/%s", k.Namespace, k.ID) }

// Compare orders keys by namespace, then id.
func (k VolumeKey) Compare(o VolumeKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.ID, o.ID))
}

// Volume is storage outside the cluster. A storage plugin mounts it on a node.
type Volume struct {
	Namespace Namespace
	ID        VolumeID
	// Name is a name for people.
	Name string
	// ExternalID is the id of the volume in the storage plugin.
	ExternalID string
	// Plugin is the id of the storage plugin.
	Plugin PluginID
	// Capabilities are the modes in which the volume may be used. There is at least one, and no two
	// are equal.
	Capabilities []VolumeCapability
	// MountOptions apply to requests without mount options. Nil means none.
	MountOptions *MountOptions `codec:",omitempty"`
	// Secrets are sent to the plugin with each call. Only clients that mount the volume read them.
	Secrets map[string]string `codec:",omitempty"`
	// Parameters and Context are sent to the plugin unchanged.
	Parameters map[string]string `codec:",omitempty"`
	Context    map[string]string `codec:",omitempty"`
	// CapacityBytes is the size of the volume, or zero if the operator did not set it.
	CapacityBytes int64 `codec:",omitempty"`
	// Topologies are the nodes that can reach the volume: nodes whose plugin has all segments of one
	// of them. Nil means all nodes.
	Topologies []Topology `codec:",omitempty"`

	CreateTime  time.Time
	ModifyTime  time.Time
	CreateIndex uint64
	ModifyIndex uint64
	// ClaimsIndex is the raft index of the last change of the volume's claims, or zero. Blocking
	// queries for one volume use it, because a deleted claim leaves no row.
	ClaimsIndex uint64 `codec:",omitempty"`
}

// Topology is the place of a volume or a node, such as "zone": "a".
type Topology struct{ Segments map[string]string }

// Equal reports whether both have the same segments.
func (t Topology) Equal(o Topology) bool { return maps.Equal(t.Segments, o.Segments) }

// Limits of one volume.
const (
	// MaxVolumeBytes is the largest total size of secrets, parameters, context, topologies and
	// mount options.
	MaxVolumeBytes        = 64 << 10
	MaxVolumeCapabilities = 16
	MaxVolumeTopologies   = 64
)

// Key returns the volume's key.
func (v *Volume) Key() VolumeKey { return VolumeKey{Namespace: v.Namespace, ID: v.ID} }

// Allows reports whether the volume may be used in the modes.
func (v *Volume) Allows(c VolumeCapability) bool { return slices.Contains(v.Capabilities, c) }

// ReachableFrom reports whether a node with this topology can use the volume.
func (v *Volume) ReachableFrom(place Topology) bool {
	if len(v.Topologies) == 0 {
		return true
	}
	return slices.ContainsFunc(v.Topologies, func(t Topology) bool {
		//lint:order each pair of the map must match
		for key, value := range t.Segments {
			if place.Segments[key] != value {
				return false
			}
		}
		return true
	})
}

// Canonicalize fills in the empty fields of a registration, and makes empty lists and maps nil.
func (v *Volume) Canonicalize() {
	if v.Namespace == "" {
		v.Namespace = DefaultNamespace
	}
	if v.Name == "" {
		v.Name = string(v.ID)
	}
	v.Secrets, v.Parameters, v.Context = orNilMap(v.Secrets), orNilMap(v.Parameters), orNilMap(v.Context)
	v.Topologies = orNil(v.Topologies)
	v.MountOptions = v.MountOptions.canonical()
}

// Validate returns the reasons why the volume cannot be registered, joined, or nil.
func (v *Volume) Validate() error {
	if v == nil {
		return errors.New("volume is missing")
	}
	var errs []error
	for _, id := range []struct{ name, text string }{
		{"volume ID", string(v.ID)}, {"namespace", string(v.Namespace)}, {"plugin ID", string(v.Plugin)},
		{"external ID", v.ExternalID}, {"volume name", v.Name},
	} {
		if err := CheckID(id.text); err != nil {
			errs = append(errs, fmt.Errorf("Invalid %s: %w", id.name, err))
		}
	}
	switch {
	case len(v.Capabilities) == 0:
		errs = append(errs, errors.New("Missing capabilities: a volume needs at least 1"))
	case len(v.Capabilities) > MaxVolumeCapabilities:
		errs = append(errs, fmt.Errorf("A volume has at most %d capabilities but found %d", MaxVolumeCapabilities, len(v.Capabilities)))
	default:
		for i, c := range v.Capabilities {
			if err := c.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("Capability %d: %w", i, err))
			} else if slices.Contains(v.Capabilities[:i], c) {
				errs = append(errs, fmt.Errorf("Capability %d: %s occurs twice", i, c))
			}
		}
	}
	if v.CapacityBytes < 0 {
		errs = append(errs, fmt.Errorf("Capacity must be >= 0 but found %d", v.CapacityBytes))
	}
	if len(v.Topologies) > MaxVolumeTopologies {
		errs = append(errs, fmt.Errorf("A volume has at most %d topologies but found %d", MaxVolumeTopologies, len(v.Topologies)))
	}
	errs = append(errs, checkMap("Secrets", v.Secrets), checkMap("Parameters", v.Parameters), checkMap("Context", v.Context),
		v.MountOptions.validate())
	size := mapBytes(v.Secrets) + mapBytes(v.Parameters) + mapBytes(v.Context) + v.MountOptions.bytes()
	for _, t := range v.Topologies {
		errs = append(errs, checkMap("Topology", t.Segments))
		size += mapBytes(t.Segments)
	}
	if size > MaxVolumeBytes {
		errs = append(errs, fmt.Errorf("Secrets, parameters, context, topologies and mount options of a volume have at most %d bytes but found %d", MaxVolumeBytes, size))
	}
	return errors.Join(errs...)
}

// Copy returns a copy that shares nothing with v.
func (v *Volume) Copy() *Volume {
	if v == nil {
		return nil
	}
	c := *v
	c.Capabilities = slices.Clone(v.Capabilities)
	c.MountOptions = v.MountOptions.Copy()
	c.Secrets, c.Parameters, c.Context = maps.Clone(v.Secrets), maps.Clone(v.Parameters), maps.Clone(v.Context)
	c.Topologies = slices.Clone(v.Topologies)
	for i, t := range c.Topologies {
		c.Topologies[i].Segments = maps.Clone(t.Segments)
	}
	return &c
}

// AccessMode is how many allocations may use a volume at a time.
type AccessMode string

// The values of [AccessMode].
const (
	// SingleNodeReader allows one claim, which reads.
	SingleNodeReader AccessMode = "single-node-reader-only"
	// SingleNodeWriter allows one claim, which reads or writes.
	SingleNodeWriter AccessMode = "single-node-writer"
	// MultiNodeReader allows any number of claims, which read.
	MultiNodeReader AccessMode = "multi-node-reader-only"
	// MultiNodeSingleWriter allows any number of claims, of which one may write.
	MultiNodeSingleWriter AccessMode = "multi-node-single-writer"
	// MultiNodeMultiWriter allows any number of claims.
	MultiNodeMultiWriter AccessMode = "multi-node-multi-writer"
)

// Valid reports whether m is one of the five values.
func (m AccessMode) Valid() bool {
	switch m {
	case SingleNodeReader, SingleNodeWriter, MultiNodeReader, MultiNodeSingleWriter, MultiNodeMultiWriter:
		return true
	}
	return false
}

// Writes reports whether a claim may write in the mode.
func (m AccessMode) Writes() bool { return m.Valid() && m != SingleNodeReader && m != MultiNodeReader }

// SingleNode reports whether the mode allows only one claim.
func (m AccessMode) SingleNode() bool { return m == SingleNodeReader || m == SingleNodeWriter }

// SingleWriter reports whether two writers would damage the volume.
func (m AccessMode) SingleWriter() bool { return m == SingleNodeWriter || m == MultiNodeSingleWriter }

// AttachmentMode is the form in which a task has a volume.
type AttachmentMode string

// The values of [AttachmentMode].
const (
	AttachFileSystem  AttachmentMode = "file-system"
	AttachBlockDevice AttachmentMode = "block-device"
)

// Valid reports whether m is one of the two values.
func (m AttachmentMode) Valid() bool { return m == AttachFileSystem || m == AttachBlockDevice }

// VolumeCapability is one way to use a volume.
type VolumeCapability struct {
	Access     AccessMode
	Attachment AttachmentMode
}

// String returns "access mode, attachment mode".
func (c VolumeCapability) String() string { return fmt.Sprintf("%s, %s", c.Access, c.Attachment) }

// Validate returns an error if the modes are not valid.
func (c VolumeCapability) Validate() error {
	if !c.Access.Valid() {
		return fmt.Errorf("Invalid access mode: %q", c.Access)
	}
	if !c.Attachment.Valid() {
		return fmt.Errorf("Invalid attachment mode: %q", c.Attachment)
	}
	return nil
}

// MountOptions are the options of the mount of a file system.
type MountOptions struct {
	// FSType is the file system. Empty means that the plugin chooses.
	FSType string
	// Flags are mount options. They may contain secrets.
	Flags []string
}

// Limits of mount options.
const (
	MaxMountFlags     = 64
	MaxMountFlagBytes = 1 << 10
)

// Equal reports whether both are equal. Nil is equal to empty options.
func (o *MountOptions) Equal(p *MountOptions) bool {
	o, p = o.canonical(), p.canonical()
	if o == nil || p == nil {
		return o == p
	}
	return o.FSType == p.FSType && slices.Equal(o.Flags, p.Flags)
}

// Copy returns a copy that shares nothing with o.
func (o *MountOptions) Copy() *MountOptions {
	if o == nil {
		return nil
	}
	return &MountOptions{FSType: o.FSType, Flags: slices.Clone(o.Flags)}
}

func (o *MountOptions) canonical() *MountOptions {
	if o == nil || o.FSType == "" && len(o.Flags) == 0 {
		return nil
	}
	return o
}

func (o *MountOptions) validate() error {
	if o == nil {
		return nil
	}
	if o.FSType != "" {
		if err := CheckID(o.FSType); err != nil {
			return fmt.Errorf("Invalid file system type: %w", err)
		}
	}
	if len(o.Flags) > MaxMountFlags {
		return fmt.Errorf("Mount options have at most %d flags but found %d", MaxMountFlags, len(o.Flags))
	}
	for i, f := range o.Flags {
		if f == "" || len(f) > MaxMountFlagBytes {
			return fmt.Errorf("Mount flag %d must have 1 to %d bytes", i, MaxMountFlagBytes)
		}
	}
	return nil
}

func (o *MountOptions) bytes() int {
	if o == nil {
		return 0
	}
	size := len(o.FSType)
	for _, f := range o.Flags {
		size += len(f)
	}
	return size
}

// errMountedBlock is the error for mount options with a block device.
var errMountedBlock = errors.New("Mount options need the attachment mode file-system")
