package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// deviceInstance is one process of a device plugin.
type deviceInstance interface {
	instance
	device.Plugin
}

// devices are the device plugins of the node.
type devices struct {
	supervised[deviceInstance]

	mu       sync.Mutex
	measured map[string]measured // the last measurement of each plugin, by plugin; guarded by mu
}

// measured is a measurement of a process.
type measured struct {
	generation uint64
	groups     []device.GroupStats
}

func newDevices(programs map[string]program[deviceInstance], calls int, e pluginEvents, logger *slog.Logger) *devices {
	return &devices{supervised: supervise(client.DevicePlugin, programs, calls, e, logger), measured: make(map[string]measured)}
}

// launch starts the next process of a device plugin, and posts its events after the answer.
func (d *devices) launch(ctx context.Context, name string, reply func(client.Launched)) {
	b, err := d.supervised.launch(ctx, name)
	if err != nil {
		reply(client.Launched{Err: err})
		return
	}
	reply(client.Launched{Generation: b.generation, Reattached: b.present.TakenOver()})
	b.running.Go(func() { d.watch(b, func() {}) })
	b.running.Go(func() { d.fingerprints(b) })
}

// fingerprints posts the devices of a process. While its stream is closed, the devices are
// unhealthy, and running tasks keep their devices.
func (d *devices) fingerprints(b *begun[deviceInstance]) {
	name := b.plugin.name
	var problems failureLog
	keepOpen(b.ctx, func() error {
		return b.present.Fingerprints(b.ctx, func(groups []*cluster.DeviceGroup) {
			r := client.DeviceReport{}
			var err error
			if r.Groups, err = device.Check(groups); err == nil {
				problems.over()
			} else {
				r.Ignored = err.Error()
				if problems.isNew(err) {
					d.logger.Error("the client ignores parts of a device plugin's report", "plugin", name, "error", err)
				}
			}
			d.events.Devices(name, b.generation, r)
		})
	}, func(err error, retryIn time.Duration) {
		d.events.Devices(name, b.generation, client.DeviceReport{Err: err})
		d.logger.Warn("a device plugin does not report its devices", "plugin", name, "error", err, "retry_in", retryIn)
	})
}

const (
	// deviceWindow is the interval of measurements, for plugins that measure over an interval.
	deviceWindow = time.Second
	// deviceTimeout is the timeout of one measurement.
	deviceTimeout = 3 * time.Second
)

// stats measures the devices once. If a plugin does not answer in time, its last measurement counts,
// which contains its time: a plugin may report only changes. Without one the plugin is left out.
func (d *devices) stats(ctx context.Context) []device.GroupStats {
	ctx, cancel := context.WithTimeout(ctx, deviceTimeout)
	defer cancel()
	names := d.names()
	each := make([][]device.GroupStats, len(names))
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() {
			p, err := d.current("Stats", name)
			if err != nil {
				return
			}
			ctx, enough := context.WithCancel(ctx)
			defer enough()
			err = p.Stats(ctx, deviceWindow, func(groups []device.GroupStats) {
				if ctx.Err() == nil {
					each[i] = groups
					enough()
				}
			})
			d.mu.Lock()
			defer d.mu.Unlock()
			if each[i] != nil {
				d.measured[name] = measured{p.Generation(), each[i]}
				return
			}
			d.logger.Debug("devices were not measured", "plugin", name, "error", err)
			if last := d.measured[name]; driver.ClassOf(err) == driver.Deadline && last.generation == p.Generation() {
				each[i] = last.groups
			}
		})
	}
	running.Wait()
	return slices.Concat(each...)
}

// fit returns the part of a reservation that the driver must get, or an error if a task of the
// driver cannot use its devices.
//
// If a driver supports no mounts and its tasks see the file system of the host, it gets no mounts:
// a file at the same path in the task is already there. Such a driver cannot provide a file at
// another path, and cannot limit the access of the task to a file.
func fit(r device.Reservation, name string, c driver.Capabilities) (device.Reservation, error) {
	if !c.NoMounts {
		return r, nil
	}
	if c.FSIsolation != driver.FSNone {
		if len(r.Mounts) > 0 {
			return r, fmt.Errorf("the devices of the task need the mount %s, and the driver %s has no mounts", r.Mounts[0].TaskPath, name)
		}
		return r, nil
	}
	for _, m := range r.Mounts {
		switch {
		case m.TaskPath != m.HostPath:
			return r, fmt.Errorf("the devices of the task need %s at %s, and the driver %s has no mounts: its tasks see a file at its path on the node", m.HostPath, m.TaskPath, name)
		case m.ReadOnly:
			return r, fmt.Errorf("the devices of the task need %s read-only, and the driver %s cannot keep its tasks from writing", m.HostPath, name)
		}
	}
	for _, d := range r.Devices {
		switch {
		case d.TaskPath != d.HostPath:
			return r, fmt.Errorf("the devices of the task need the device file %s at %s, and the driver %s has no mounts: its tasks see a file at its path on the node", d.HostPath, d.TaskPath, name)
		case d.Permissions != "" && !(strings.Contains(d.Permissions, "r") && strings.Contains(d.Permissions, "w")):
			return r, fmt.Errorf("the devices of the task need the device file %s with the permissions %q alone, and the driver %s cannot limit its tasks", d.HostPath, d.Permissions, name)
		}
	}
	return device.Reservation{Env: r.Env}, nil
}
