package cluster

import (
	"errors"
	"fmt"
	"slices"
)

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
