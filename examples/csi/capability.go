package main

import (
	"path/filepath"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// accessMode states how many nodes may use a volume, and how.
type accessMode = csi.VolumeCapability_AccessMode_Mode

// The access modes that the plugin supports.
const (
	singleWriter = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	singleReader = csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
	manyReaders  = csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	oneWriter    = csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER
	manyWriters  = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
)

// modeOf returns the access mode of a capability, or an error if this plugin does not support it.
func modeOf(c *csi.VolumeCapability) (accessMode, error) {
	mode, mount := c.GetAccessMode().GetMode(), c.GetMount()
	switch {
	case c == nil:
		return mode, invalidArgument("the request has no volume capability")
	case mount == nil:
		return mode, invalidArgument("volumes of this plugin are folders: the access type must be mount")
	case mount.GetFsType() != "" || mount.GetVolumeMountGroup() != "" || len(mount.GetMountFlags()) > 0:
		// Flags may contain secrets, so the error does not contain them.
		return mode, invalidArgument("volumes of this plugin are folders: they have no file system type, no group and no mount flags")
	}
	switch mode {
	case singleWriter, singleReader, manyReaders, oneWriter, manyWriters:
		return mode, nil
	default:
		return mode, invalidArgument("this plugin does not have the access mode %s", mode)
	}
}

// single reports whether a volume with this mode may be published to one node only.
func single(m accessMode) bool { return m == singleWriter || m == singleReader }

// reads reports whether no node may write to a volume with this mode.
func reads(m accessMode) bool { return m == singleReader || m == manyReaders }

// CSI allows volume ids of 128 bytes, and node ids of 256 bytes.
func checkVolumeID(id string) error { return checkID("volume id", id, 128) }

func checkNodeID(id string) error { return checkID("node id", id, 256) }

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
