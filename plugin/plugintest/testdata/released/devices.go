package main

import (
	"bytes"
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
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// period is the time between two reads of the devices. The plugins' own default is a minute.
const period = 100 * time.Millisecond

// cards is a device plugin. Its devices are the lines "ID MODEL HEALTH" of a file, with "ok" or a
// word that states why the device is unhealthy.
type cards struct {
	info   sdk.Info
	file   string
	vendor string
	// nvml: the plugin gets its texts from the library of Nvidia.
	nvml bool

	mu sync.Mutex
	// reported is the file as it was reported last, on any stream; guarded by mu.
	reported []byte
}

var _ sdk.DeviceStatsSource = (*cards)(nil)

func nvidia(dir string) *cards {
	return &cards{file: filepath.Join(dir, "gpus"), vendor: "nvidia", nvml: true, info: sdk.Info{
		Name: "nvidia-gpu", Version: "1.1.0", ConfigSchema: sdk.Object(map[string]*sdk.Spec{
			"enabled":            sdk.Default(sdk.Attribute("bool", false), "true"),
			"ignored_gpu_ids":    sdk.Default(sdk.Attribute("list(string)", false), "[]"),
			"fingerprint_period": sdk.Default(sdk.Attribute("string", false), `"1m"`),
		}),
	}}
}

func skeletonDevice(dir string) *cards {
	return &cards{file: filepath.Join(dir, "skeletons"), vendor: "hashicorp", info: sdk.Info{
		Name: "skeleton-device", Version: "0.1.0", ConfigSchema: sdk.Object(map[string]*sdk.Spec{
			"fingerprint_period": sdk.Default(sdk.Attribute("string", false), `"1m"`),
		}),
	}}
}

func (c *cards) Info() sdk.Info { return c.info }

// Configure accepts every config: a client checks it against the schema.
func (*cards) Configure([]byte) error { return nil }

// Fingerprints reports the devices when they differ from the last report of this process. So a
// second stream gets nothing until a device changes.
func (c *cards) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	for {
		if text, changed := c.read(); changed {
			report(c.groups(text))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(period):
		}
	}
}

// read reads the devices, and reports whether they have changed since the last read.
func (c *cards) read() ([]byte, bool) {
	text, err := os.ReadFile(c.file)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.reported != nil && bytes.Equal(text, c.reported) {
		return nil, false
	}
	c.reported = append([]byte{}, text...)
	return text, true
}

// known returns the devices of the last report.
func (c *cards) known() []*cluster.DeviceGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups(c.reported)
}

func (c *cards) groups(text []byte) (groups []*cluster.DeviceGroup) {
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		at := slices.IndexFunc(groups, func(g *cluster.DeviceGroup) bool { return g.Kind.Name == words[1] })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: c.vendor, Type: "gpu", Name: words[1]}, Attributes: c.attributes()})
		}
		d := cluster.Device{ID: words[0], Healthy: words[2] == "ok"}
		if !d.Healthy {
			d.HealthDescription = words[2]
		}
		if c.nvml {
			// The driver's buffer has 32 bytes, and the plugin sends all of them.
			bus := fmt.Sprintf("00000000:%02X:00.0", n+1)
			d.PCIBusID = bus + strings.Repeat("\x00", 32-len(bus))
		}
		groups[at].Devices = append(groups[at].Devices, d)
	}
	return groups
}

func (c *cards) attributes() map[string]cluster.DeviceAttribute {
	if !c.nvml {
		return nil
	}
	return map[string]cluster.DeviceAttribute{
		"memory":         {Kind: cluster.AttributeInt, Int: 143771, Unit: "MiB"},
		"power":          {Kind: cluster.AttributeInt, Int: 700, Unit: "W"},
		"driver_version": {Text: "570.86"},
	}
}

// Reserve returns the variable that the container runtime of Nvidia reads.
func (c *cards) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	known := c.known()
	for _, id := range ids {
		if !slices.ContainsFunc(known, func(g *cluster.DeviceGroup) bool {
			return slices.ContainsFunc(g.Devices, func(d cluster.Device) bool { return d.ID == id })
		}) {
			return device.Reservation{}, errors.New("unknown device IDs: " + id)
		}
	}
	if !c.nvml || len(ids) == 0 {
		return device.Reservation{}, nil
	}
	return device.Reservation{Env: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(ids, ",")}}, nil
}

// Stats reports the use of memory at once and in each interval.
func (c *cards) Stats(ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
	for {
		var all []device.GroupStats
		for _, g := range c.known() {
			stats := device.GroupStats{Kind: g.Kind, Devices: map[string]device.Stats{}}
			for _, d := range g.Devices {
				stats.Devices[d.ID] = device.Stats{Time: time.Now(), Summary: device.StatValue{
					IntNumerator: new(int64(4)), IntDenominator: new(int64(143771)), Unit: "MiB", Description: "used memory",
				}}
			}
			all = append(all, stats)
		}
		report(all)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}
