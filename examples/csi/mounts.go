package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

// mountTable is the mount table of this process. A later mount covers an earlier one.
type mountTable mounts.Table

func readMounts() (mountTable, error) {
	table, err := mounts.Read()
	return mountTable(table), err
}

// mountPoint is a line of the mount table.
type mountPoint = mounts.Mount

// same reports whether two mounts show the same folder of the same file system.
func same(a, b mountPoint) bool { return a.Device == b.Device && a.Root == b.Root }

// at returns the mount that is visible at a path, if the path is a mount point.
func (t mountTable) at(path string) (mountPoint, bool) {
	for _, m := range slices.Backward(t) {
		if m.Point == path {
			return m, true
		}
	}
	return mountPoint{}, false
}

// folder returns the mount that a bind mount of a folder would have. The path must not contain
// symbolic links.
func (t mountTable) folder(path string) mountPoint {
	var found mountPoint
	for _, m := range t {
		if len(m.Point) < len(found.Point) {
			continue
		}
		if rest, below := strings.CutPrefix(path, strings.TrimSuffix(m.Point, "/")); below && (rest == "" || rest[0] == '/') {
			found = mountPoint{Device: m.Device, Root: filepath.Join(m.Root, rest), Point: m.Point}
		}
	}
	found.Point = ""
	return found
}

// showing returns the mount points of all mounts of a folder.
func (t mountTable) showing(folder mountPoint) []string {
	var points []string
	for _, m := range t {
		if same(m, folder) && m.Point != "/" {
			points = append(points, m.Point)
		}
	}
	return points
}

// bind mounts a folder at a path. For a read-only mount it makes two calls, because the kernel has
// no single call for this.
func bind(from, to string, readOnly bool) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return mountFailed("mount "+from+" at "+to, err)
	}
	if !readOnly {
		return nil
	}
	if err := makeReadOnly(to); err != nil {
		return errors.Join(err, unmount(to))
	}
	return nil
}

// makeReadOnly changes a bind mount. The other options of the mount stay.
func makeReadOnly(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return mountFailed("read the options of "+path, err)
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY)
	// The flags of statfs and of mount have the same values.
	flags |= uintptr(fs.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if err := unix.Mount("", path, "", flags, ""); err != nil {
		return mountFailed("make "+path+" read only", err)
	}
	return nil
}

// unmount unmounts the visible mount at a path. A mount in use stays, and the error names it.
func unmount(path string) error {
	if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
		return mountFailed("unmount "+path, err)
	}
	return nil
}

// mountFailed returns an error with the gRPC code for callers of the plugin.
func mountFailed(operation string, err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return status.Errorf(codes.Internal, "%s: the mount is in use: %v", operation, err)
	case errors.Is(err, unix.EPERM):
		return status.Errorf(codes.PermissionDenied, "%s: this process has no right to mount: it needs root's capability CAP_SYS_ADMIN: %v", operation, err)
	}
	return status.Errorf(codes.Internal, "%s: %v", operation, err)
}

// checkRights returns an error if this process may not mount. It tests this by a bind mount of a
// new folder on itself.
func checkRights(parent string) error {
	folder, err := os.MkdirTemp(parent, "probe~")
	if err != nil {
		return fmt.Errorf("try a mount: %w", err)
	}
	err = bind(folder, folder, false)
	if err == nil {
		err = unmount(folder)
	}
	return errors.Join(err, os.Remove(folder))
}

// resolve returns a path as the mount table shows it: without symbolic links in its parent. If the
// parent does not exist, it returns the path unchanged.
func resolve(path string) string {
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(parent, filepath.Base(path))
	}
	return filepath.Clean(path)
}
