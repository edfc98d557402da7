package node

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// The use of a machine is shown as far as the node reports it.
func TestHostTable(t *testing.T) {
	t.Parallel()
	for want, stats := range map[string]*wire.HostStats{
		"CPU  Memory  Disk\n-    -       -": {},
		"CPU             Memory            Disk\n25% of 2 cores  1.0 GiB/4.0 GiB   512 B/1.0 TiB": {
			CPU:           []*wire.HostCPUStats{{Idle: 50}, nil, {Idle: 100}},
			Memory:        &wire.HostMemoryStats{Total: 4 << 30, Used: 1 << 30},
			AllocDirStats: &wire.HostDiskStats{Size: 1 << 40, Used: 512},
		},
		"CPU  Memory  Disk\n-    -       - ": {CPU: []*wire.HostCPUStats{nil}, Memory: &wire.HostMemoryStats{}, AllocDirStats: &wire.HostDiskStats{}},
	} {
		must.Eq(t, strings.Join(strings.Fields(want), " "), strings.Join(strings.Fields(hostTable(stats).String()), " "))
	}
}

// The devices are in the order of their names, and what is missing is a dash.
func TestDeviceTable(t *testing.T) {
	t.Parallel()
	must.Eq(t, "Device  Value  Meaning", deviceTable([]*wire.DeviceGroupStats{nil, {Vendor: "acme"}}).String())
	used, most, load, text := int64(3), int64(8), 0.5, "idle"
	got := deviceTable([]*wire.DeviceGroupStats{
		{Vendor: "b", Type: "gpu", Name: "x", InstanceStats: map[string]*wire.DeviceStats{"1": {}, "2": nil}},
		{Vendor: "a", Type: "gpu", Name: "x", InstanceStats: map[string]*wire.DeviceStats{
			"3": {Summary: &wire.StatValue{FloatNumeratorVal: &load, Unit: "W"}},
			"2": {Summary: &wire.StatValue{IntNumeratorVal: &used, IntDenominatorVal: &most, Unit: "GiB", Desc: "memory"}},
			"4": {Summary: &wire.StatValue{StringVal: &text}},
		}},
	}).String()
	must.Eq(t, "Device Value Meaning a/gpu/x/2 3/8 GiB memory a/gpu/x/3 0.50 W - a/gpu/x/4 idle - b/gpu/x/1 - -", strings.Join(strings.Fields(got), " "))
}

func TestBytesText(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 1 << 60: "1.0 EiB", 1<<64 - 1: "16.0 EiB",
	} {
		must.Eq(t, want, cli.BytesText(n))
	}
}
