package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// lampFault replaces calls of the device plugin. The functions that are nil replace nothing.
type lampFault struct {
	configure    func(*lamps, []byte) error
	groups       func(*lamps, []*cluster.DeviceGroup) []*cluster.DeviceGroup
	fingerprints func(*lamps, context.Context, func([]*cluster.DeviceGroup)) error
	reserve      func(*lamps, []string) (device.Reservation, error)
	stats        func(*lamps, context.Context, time.Duration, func([]device.GroupStats)) error
}

// lamps is a device plugin with a fault. Its devices are the files of a folder, and each file names
// its lamp.
type lamps struct {
	fault  lampFault
	folder string

	mu    sync.Mutex
	noted map[string]int // guarded by mu
}

var (
	_ sdk.Device            = (*lamps)(nil)
	_ sdk.DeviceStatsSource = (*lamps)(nil)
)

// note remembers a text and returns how often it was remembered before.
func (l *lamps) note(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted[text]++
	return l.noted[text] - 1
}

func (*lamps) Info() sdk.Info {
	return sdk.Info{Name: "lamps", Version: "1.0.0", ConfigSchema: sdk.Object(map[string]*sdk.Spec{"folder": sdk.Attribute("string", true)})}
}

func (l *lamps) Configure(config []byte) error {
	if l.fault.configure != nil {
		return l.fault.configure(l, config)
	}
	return l.configure(config)
}

func (l *lamps) configure(config []byte) error {
	var c struct {
		Folder string `codec:"folder"`
	}
	if err := sdk.Decode(config, &c); err != nil {
		return err
	}
	if !filepath.IsAbs(c.Folder) {
		return fmt.Errorf("the folder %q is not absolute", c.Folder)
	}
	l.folder = c.Folder
	return nil
}

// ids returns the ids of the lamps.
func (l *lamps) ids() []string {
	entries, _ := os.ReadDir(l.folder) // no folder has no lamps
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

// groups returns the lamps.
func (l *lamps) groups() []*cluster.DeviceGroup {
	var groups []*cluster.DeviceGroup
	if ids := l.ids(); len(ids) > 0 {
		g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L1"}}
		for _, id := range ids {
			g.Devices = append(g.Devices, cluster.Device{ID: id, Healthy: true})
		}
		groups = append(groups, g)
	}
	if l.fault.groups != nil {
		groups = l.fault.groups(l, groups)
	}
	return groups
}

func (l *lamps) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	if l.fault.fingerprints != nil {
		return l.fault.fingerprints(l, ctx, report)
	}
	return l.watch(ctx, report)
}

func (l *lamps) watch(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	before := l.ids()
	for report(l.groups()); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if now := l.ids(); !slices.Equal(now, before) {
			before = now
			report(l.groups())
		}
	}
}

func (l *lamps) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	if l.fault.reserve != nil {
		return l.fault.reserve(l, ids)
	}
	return l.reserve(ids)
}

func (l *lamps) reserve(ids []string) (device.Reservation, error) {
	known := l.ids()
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return device.Reservation{}, fmt.Errorf("unknown device %q", id)
		}
	}
	return l.answer(ids), nil
}

// answer is what a task needs for its lamps.
func (l *lamps) answer(ids []string) device.Reservation {
	if len(ids) == 0 {
		return device.Reservation{}
	}
	r := device.Reservation{Env: map[string]string{"LAMPS": strings.Join(ids, ",")}}
	for _, id := range ids {
		r.Devices = append(r.Devices, driver.Device{TaskPath: "/dev/lamps/" + id, HostPath: filepath.Join(l.folder, id), Permissions: "rw"})
	}
	return r
}

func (l *lamps) Stats(ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
	if l.fault.stats != nil {
		return l.fault.stats(l, ctx, interval, report)
	}
	return l.measure(ctx, interval, report)
}

func (l *lamps) measure(ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		report(statsOf(l.ids()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func statsOf(ids []string) []device.GroupStats {
	s := device.GroupStats{Kind: cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L1"}, Devices: map[string]device.Stats{}}
	for _, id := range ids {
		s.Devices[id] = device.Stats{Time: time.Now(), Summary: device.StatValue{IntNumerator: new(int64(40)), Unit: "W", Description: "power"}}
	}
	return []device.GroupStats{s}
}

var errLamp = errors.New("the lamp is in use")
