package main

import (
	"path/filepath"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxID is the longest volume id that CSI allows, in bytes. Ids of nodes may have 256 bytes.
const (
	maxID     = 128
	maxNodeID = 256
)

// mode contains the properties of an access mode that the plugin uses.
type mode struct {
	name string
	// single: the volume may be published to one node only.
	single bool
	// reads: no node may write.
	reads bool
	// oneWriter: at most one node may write.
	oneWriter bool
}

// modeOf returns the access mode of a capability, or an error if this plugin does not support it.
func modeOf(c *csi.VolumeCapability) (mode, error) {
	if c == nil {
		return mode{}, invalidArgument("the request has no volume capability")
	}
	mount := c.GetMount()
	if mount == nil {
		return mode{}, invalidArgument("volumes of this plugin are folders: the access type must be mount")
	}
	switch {
	case mount.GetFsType() != "":
		return mode{}, invalidArgument("volumes of this plugin are folders: there is no file system %q to make", mount.GetFsType())
	case mount.GetVolumeMountGroup() != "":
		return mode{}, invalidArgument("this plugin does not change the group of a volume")
	}
	if flags := mount.GetMountFlags(); len(flags) > 0 {
		// Flags may contain secrets, so the error does not contain them.
		return mode{}, invalidArgument("this plugin knows no mount flags")
	}
	m := mode{name: c.GetAccessMode().GetMode().String()}
	switch c.GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:
		m.single = true
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		m.single, m.reads = true, true
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		m.reads = true
	case csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:
		m.oneWriter = true
	case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
	default:
		return mode{}, invalidArgument("this plugin does not have the access mode %s", m.name)
	}
	return m, nil
}

// singleMode reports whether a mode with this name allows one node only.
func singleMode(name string) bool {
	number := csi.VolumeCapability_AccessMode_Mode(csi.VolumeCapability_AccessMode_Mode_value[name])
	return number == csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER || number == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
}

func checkVolumeID(id string) error { return checkID("volume id", id, maxID) }

func checkNodeID(id string) error { return checkID("node id", id, maxNodeID) }

func checkID(name, id string, most int) error {
	switch {
	case id == "":
		return invalidArgument("the request has no %s", name)
	case len(id) > most:
		return invalidArgument("the %s has %d bytes, and may have %d", name, len(id), most)
	case !utf8.ValidString(id):
		return invalidArgument("the %s is not UTF-8", name)
	}
	return nil
}

func checkPath(name, path string) error {
	switch {
	case path == "":
		return invalidArgument("the request has no %s", name)
	case !filepath.IsAbs(path):
		return invalidArgument("the %s is not absolute", name)
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func invalidArgument(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func noVolume(id string) error { return status.Errorf(codes.NotFound, "there is no volume %s", id) }
