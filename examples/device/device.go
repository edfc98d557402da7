package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// interval is the time between two checks for changes.
const interval = time.Second

// files is the plugin. Its only state is its config. It reads the devices from the machine each
// time, and the client records which task has a device.
type files struct {
	// groups does not change after Configure.
	groups []group
}

var _ sdk.Device = (*files)(nil)

// Info describes the plugin and the schema of its config.
func (*files) Info() sdk.Info {
	return sdk.Info{Name: "files", Version: "1.0.0", ConfigSchema: schema()}
}

// Configure reads the config of the plugin.
func (p *files) Configure(config []byte) (err error) {
	p.groups, err = read(config)
	return err
}

// Fingerprints reports the devices at once, and again when they have changed.
func (p *files) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	last := p.find()
	for report(last); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if now := p.find(); !reflect.DeepEqual(last, now) {
			last = now
			report(last)
		}
	}
}

// find returns the present devices of the machine. The id of a device is its path, so it stays the
// same after a restart of the plugin or the machine. If two groups name a file, it belongs to the
// first group.
func (p *files) find() []*cluster.DeviceGroup {
	var found []*cluster.DeviceGroup
	taken := map[string]bool{}
	for _, g := range p.groups {
		devices := &cluster.DeviceGroup{
			Kind:       cluster.DeviceKind{Vendor: g.Vendor, Type: g.Type, Name: g.Name},
			Attributes: attributes(g),
		}
		for _, path := range g.find() {
			if !taken[path] {
				taken[path] = true
				devices.Devices = append(devices.Devices, g.inspect(path))
			}
		}
		if len(devices.Devices) > 0 {
			found = append(found, devices)
		}
	}
	return found
}

// find returns the paths of a group. A path without a pattern is always a device; if the file does
// not exist, the device is unhealthy. A device of a pattern disappears when its file disappears.
func (g group) find() []string {
	var paths []string
	for _, path := range g.Paths {
		if !isPattern(path) {
			paths = append(paths, filepath.Clean(path))
			continue
		}
		matches, _ := filepath.Glob(path) // Configure has checked the pattern
		paths = append(paths, matches...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// attributes returns the attributes of a group. Whole numbers become integers, so that constraints
// can compare them.
func attributes(g group) map[string]cluster.DeviceAttribute {
	all := map[string]cluster.DeviceAttribute{}
	for name, text := range g.Attributes {
		all[name] = cluster.DeviceAttribute{Text: text}
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			all[name] = cluster.DeviceAttribute{Kind: cluster.AttributeInt, Int: number}
		}
	}
	return all
}

// inspect returns a device. It is healthy if the file exists and can be used.
func (g group) inspect(path string) cluster.Device {
	mode := uint32(unix.R_OK | unix.W_OK)
	if g.ReadOnly {
		mode = unix.R_OK
	}
	if err := unix.Access(path, mode); err != nil {
		return cluster.Device{ID: path, HealthDescription: err.Error()}
	}
	return cluster.Device{ID: path, Healthy: true}
}

// Reserve returns what a task needs to use its files: a variable with their paths, and each file at
// the same path in the task. It creates nothing, so nothing must be removed when the task ends.
func (p *files) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	var r device.Reservation
	found := p.find()
	for _, id := range ids {
		g, d, err := lookUp(found, id)
		if err != nil {
			return device.Reservation{}, err
		}
		if !d.Healthy {
			// The file may exist again when the client retries.
			return device.Reservation{}, sdk.Recoverable(fmt.Errorf("%s: %s", id, d.HealthDescription))
		}
		if err := p.add(&r, g, id); err != nil {
			return device.Reservation{}, err
		}
	}
	return r, nil
}

// lookUp returns a device and its kind. An unknown id is an error, because a task must not get a
// file that the config does not name.
func lookUp(found []*cluster.DeviceGroup, id string) (cluster.DeviceKind, cluster.Device, error) {
	for _, g := range found {
		for _, d := range g.Devices {
			if d.ID == id {
				return g.Kind, d, nil
			}
		}
	}
	return cluster.DeviceKind{}, cluster.Device{}, fmt.Errorf("%q is no device of this plugin", id)
}

// add adds a file to a reservation: a device file as a device, every other file as a mount.
func (p *files) add(r *device.Reservation, kind cluster.DeviceKind, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return sdk.Recoverable(err)
	}
	readOnly := slices.ContainsFunc(p.groups, func(g group) bool { return g.Name == kind.Name && g.ReadOnly })
	if info.Mode()&os.ModeDevice != 0 {
		permissions := "rw"
		if readOnly {
			permissions = "r"
		}
		r.Devices = append(r.Devices, driver.Device{TaskPath: path, HostPath: path, Permissions: permissions})
	} else {
		r.Mounts = append(r.Mounts, driver.Mount{TaskPath: path, HostPath: path, ReadOnly: readOnly})
	}
	if r.Env == nil {
		r.Env = map[string]string{}
	}
	// The name contains the kind, because a task may have files of two kinds and needs both
	// variables.
	name := variable(kind.Name)
	r.Env[name] = strings.TrimPrefix(r.Env[name]+","+path, ",")
	return nil
}

// variable is the name of the variable with the paths of a kind, such as FILES_CAMERA.
func variable(kind string) string {
	return "FILES_" + strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(kind))
}
