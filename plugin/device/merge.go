package device

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Part is the reservation for one request of a task.
type Part struct {
	// For names the devices in errors, for example "nvidia/gpu/T4".
	For string
	Reservation
}

// Merge returns what a task needs for all its devices. The error states which part is not valid, or
// which two parts conflict. After an error the task must not start, because it would have only some
// of its devices.
//
// Several parts may contain the same variable if its value is the same. Several parts may contain
// the same path in the task if it is the same file of the host. The mount is writable if one part
// needs to write, and a device file has the permissions of all parts. A mount and a device file at
// the same path conflict. Mounts and device files are sorted by path, so that a folder comes before
// the files in it.
//
// Variables of devices replace variables of the job with the same name: see plugin/taskenv.
func Merge(parts []Part) (Reservation, error) {
	m := merging{env: map[string]from[string]{}, mounts: map[string]from[driver.Mount]{}, devices: map[string]from[driver.Device]{}}
	for _, part := range parts {
		if err := part.Reservation.check(); err != nil {
			return Reservation{}, fmt.Errorf("the reservation of %s: %w", part.For, err)
		}
		if err := m.add(part); err != nil {
			return Reservation{}, err
		}
	}
	return m.result(), nil
}

// from is a value and the name of its part.
type from[T any] struct {
	value T
	part  string
}

// merging is a merge in progress. The keys of mounts and devices are their paths in the task.
type merging struct {
	env     map[string]from[string]
	mounts  map[string]from[driver.Mount]
	devices map[string]from[driver.Device]
}

func (m *merging) add(part Part) error {
	for _, name := range slices.Sorted(maps.Keys(part.Env)) {
		value := part.Env[name]
		if other, is := m.env[name]; is && other.value != value {
			return conflict(fmt.Sprintf("the variable %q different values", name), other.part, part.For)
		}
		m.env[name] = from[string]{value, part.For}
	}
	for _, mount := range part.Mounts {
		mount.TaskPath, mount.HostPath = filepath.Clean(mount.TaskPath), filepath.Clean(mount.HostPath)
		other, is := m.mounts[mount.TaskPath]
		if is && (other.value.HostPath != mount.HostPath || other.value.Propagation != mount.Propagation) {
			return conflict(fmt.Sprintf("the path %q of the task different mounts", mount.TaskPath), other.part, part.For)
		}
		mount.ReadOnly = mount.ReadOnly && (!is || other.value.ReadOnly)
		m.mounts[mount.TaskPath] = from[driver.Mount]{mount, part.For}
	}
	for _, d := range part.Devices {
		d.TaskPath, d.HostPath = filepath.Clean(d.TaskPath), filepath.Clean(d.HostPath)
		other, is := m.devices[d.TaskPath]
		if is && other.value.HostPath != d.HostPath {
			return conflict(fmt.Sprintf("the path %q of the task different device files", d.TaskPath), other.part, part.For)
		}
		if is {
			d.Permissions = union(other.value.Permissions, d.Permissions)
		}
		m.devices[d.TaskPath] = from[driver.Device]{d, part.For}
	}
	for _, path := range slices.Sorted(maps.Keys(m.devices)) {
		if mount, is := m.mounts[path]; is {
			return conflict(fmt.Sprintf("the path %q of the task a mount and a device file", path), mount.part, m.devices[path].part)
		}
	}
	return nil
}

// conflict is the error of two parts that conflict.
func conflict(resource, one, other string) error {
	if one == other {
		return fmt.Errorf("the devices %s give %s", one, resource)
	}
	return fmt.Errorf("the devices %s and %s give %s: one task cannot use both", one, other, resource)
}

func (m *merging) result() Reservation {
	var r Reservation
	for name, value := range m.env {
		if r.Env == nil {
			r.Env = map[string]string{}
		}
		r.Env[name] = value.value
	}
	for _, path := range slices.Sorted(maps.Keys(m.mounts)) {
		r.Mounts = append(r.Mounts, m.mounts[path].value)
	}
	for _, path := range slices.Sorted(maps.Keys(m.devices)) {
		r.Devices = append(r.Devices, m.devices[path].value)
	}
	return r
}

// union returns the letters of both permissions, in the order of permissions. Empty permissions are
// the driver's default, which is all permissions.
func union(a, b string) string {
	if a == "" || b == "" {
		return ""
	}
	var both strings.Builder
	for _, letter := range permissions {
		if strings.ContainsRune(a+b, letter) {
			both.WriteRune(letter)
		}
	}
	return both.String()
}

// permissions are the letters of a device's permissions: read, write, mknod.
const permissions = "rwm"

// Limits of a reservation.
const (
	// MaxPaths is the largest number of mounts, and of device files, in a reservation.
	MaxPaths = 4096
	// MaxPath is the longest path in bytes.
	MaxPath = 4096
)

// check states why a reservation is not valid, or returns nil. Package taskenv limits the size of an
// environment.
func (r Reservation) check() error {
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("the variable %q: the name must not be empty or contain %q or a zero byte", cut(name, MaxAttributeName), "=")
		case strings.Contains(r.Env[name], "\x00"):
			return fmt.Errorf("the variable %q: the value contains a zero byte", cut(name, MaxAttributeName))
		}
	}
	if len(r.Mounts) > MaxPaths || len(r.Devices) > MaxPaths {
		return fmt.Errorf("it has %d mounts and %d device files, and may have %d of each", len(r.Mounts), len(r.Devices), MaxPaths)
	}
	for _, m := range r.Mounts {
		if err := errors.Join(checkPath(m.TaskPath), checkPath(m.HostPath)); err != nil {
			return fmt.Errorf("a mount: %w", err)
		}
	}
	for _, d := range r.Devices {
		if err := errors.Join(checkPath(d.TaskPath), checkPath(d.HostPath)); err != nil {
			return fmt.Errorf("a device file: %w", err)
		}
		if strings.Trim(d.Permissions, permissions) != "" {
			return fmt.Errorf("a device file: the permissions %q have letters other than %q", cut(d.Permissions, MaxID), permissions)
		}
	}
	return nil
}

// checkPath states why a path is not valid in a reservation, or returns nil.
func checkPath(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("the path %q is not absolute", cut(path, MaxName))
	case len(path) > MaxPath:
		return fmt.Errorf("the path %q has %d bytes, and may have %d", cut(path, MaxName), len(path), MaxPath)
	case strings.Contains(path, "\x00"):
		return fmt.Errorf("the path %q contains a zero byte", cut(path, MaxName))
	case slices.Contains(strings.Split(path, "/"), ".."):
		return fmt.Errorf("the path %q leads upwards", cut(path, MaxName))
	}
	return nil
}
