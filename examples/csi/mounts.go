package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mount is a line of the mount table.
type mount struct {
	// device and root identify what is mounted: a file system, and a folder of it.
	device, root string
	// point is the mount point.
	point    string
	readOnly bool
}

// shows reports whether two mounts show the same folder of the same file system.
func (m mount) shows(other mount) bool { return m.device == other.device && m.root == other.root }

// mountTable is the mount table of this process. A later mount covers an earlier one.
type mountTable []mount

// readMounts reads the mount table.
func readMounts() (mountTable, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	return parseMounts(string(text)), nil
}

// parseMounts reads the text of proc(5)'s mountinfo. It ignores lines of another form.
func parseMounts(text string) mountTable {
	const device, root, point, options, least = 2, 3, 4, 5, 6
	var table mountTable
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < least {
			continue
		}
		table = append(table, mount{
			device:   fields[device],
			root:     unescape(fields[root]),
			point:    unescape(fields[point]),
			readOnly: slices.Contains(strings.Split(fields[options], ","), "ro"),
		})
	}
	return table
}

// unescape replaces the octal escapes of mountinfo.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s // most paths have no escapes, and a replacer is slow
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// at returns the mount that is visible at a path, if the path is a mount point.
func (t mountTable) at(path string) (mount, bool) {
	for _, m := range slices.Backward(t) {
		if m.point == path {
			return m, true
		}
	}
	return mount{}, false
}

// folder returns the mount that a bind mount of a folder would have. The path must not contain
// symbolic links.
func (t mountTable) folder(path string) mount {
	var found mount
	for _, m := range t {
		if len(m.point) < len(found.point) {
			continue
		}
		if rest, below := strings.CutPrefix(path, strings.TrimSuffix(m.point, "/")); below && (rest == "" || rest[0] == '/') {
			found = mount{device: m.device, root: filepath.Join(m.root, rest), point: m.point}
		}
	}
	found.point = ""
	return found
}

// showing returns the mount points of all mounts of a folder.
func (t mountTable) showing(folder mount) []string {
	var points []string
	for _, m := range t {
		if m.shows(folder) && m.point != "/" {
			points = append(points, m.point)
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
func mountFailed(what string, err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return status.Errorf(codes.Internal, "%s: the mount is in use: %v", what, err)
	case errors.Is(err, unix.EPERM):
		return status.Errorf(codes.PermissionDenied, "%s: this process has no right to mount: it needs root's capability CAP_SYS_ADMIN: %v", what, err)
	}
	return status.Errorf(codes.Internal, "%s: %v", what, err)
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
