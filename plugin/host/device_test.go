package host_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// newDeviceBench is newBench for a device plugin.
func newDeviceBench(t *testing.T, s script) *bench {
	t.Helper()
	b := newBench(t, s)
	b.options.Type = host.Device
	return b
}

// first returns the first fingerprint.
func first(t *testing.T, p device.Plugin) []*cluster.DeviceGroup {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var groups []*cluster.DeviceGroup
	came := false
	err := p.Fingerprints(ctx, func(g []*cluster.DeviceGroup) {
		if !came {
			came, groups = true, g
		}
		cancel()
	})
	must.True(t, came, must.Sprint(err))
	return groups
}

// A device plugin has the launch of a driver, without the calls of drivers.
func TestDevice_launch(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]host.Type{"it must be a device plugin": host.Device, "it may be either": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newDeviceBench(t, ofDevices(2))
			b.options.Type, b.options.Config = kind, []byte(`{"mode": "dim"}`)
			i := b.launch()
			must.Eq(t, host.Info{Type: host.Device, Name: "scripted", Version: "1.2.3", APIVersion: "v0.1.0"}, i.Info())
			must.Eq(t, []string{"PluginInfo", "ConfigSchema", "SetConfig"}, b.lines("call"))
			must.Eq(t, []string{"mode=dim version=v0.1.0 topology=true ports=0-0"}, b.lines("config"))
			must.NoError(t, i.Check(t.Context()))
			must.Nil(t, i.Driver())
			must.NoError(t, i.Shutdown(t.Context()))
			must.SliceNotContains(t, b.lines("call"), "Shutdown")
			<-i.Done()
		})
	}
	b := newBench(t, ofDevices(2))
	b.fails("is a DEVICE, not a driver")
	b = newDeviceBench(t, script{})
	b.fails("is a DRIVER, not a device")
	b = newBench(t, script{})
	b.options.Type = 0
	i := b.launch()
	must.Nil(t, i.Device())
	must.Eq(t, host.Driver, i.Info().Type)
}

// All calls carry all fields of the protocol.
func TestDevice(t *testing.T) {
	t.Parallel()
	testDevice(t, ofDevices(2))
}

// The Nvidia plugin sends the bus ids with the rest of their buffers. The client cuts each string
// at the first NUL.
func TestDevice_paddedStrings(t *testing.T) {
	t.Parallel()
	s := ofDevices(2)
	s.Padded = true
	testDevice(t, s)
}

func testDevice(t *testing.T, s script) {
	t.Helper()
	s.HealthMessage = "bro\x07ken"
	p := newDeviceBench(t, s).launch().Device()
	ctx := t.Context()
	must.Eq(t, []*cluster.DeviceGroup{{
		Kind: cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L1"},
		Attributes: map[string]cluster.DeviceAttribute{
			"count":  {Kind: cluster.AttributeInt},
			"memory": {Kind: cluster.AttributeInt, Int: 5, Unit: "GiB"},
			"load":   {Kind: cluster.AttributeFloat, Float: 0.5},
			"dim":    {Kind: cluster.AttributeBool, Bool: true},
			"color":  {Text: "?red"},
			"none":   {},
		},
		Devices: []cluster.Device{
			{ID: "lamp-0", HealthDescription: "bro?ken", PCIBusID: "0000:00:00.0"},
			{ID: "lamp-1", Healthy: true, HealthDescription: "bro?ken", PCIBusID: "0000:00:01.0"},
		},
	}}, first(t, p))

	r, err := p.Reserve(ctx, []string{"lamp-0", "lamp-1"})
	must.NoError(t, err)
	must.Eq(t, device.Reservation{
		Env:     map[string]string{"LAMPS": "lamp-0,lamp-1"},
		Mounts:  []driver.Mount{{TaskPath: "/lib/lamp", HostPath: "/usr/lib/lamp", ReadOnly: true}, {TaskPath: "/w", HostPath: "/var/w"}},
		Devices: []driver.Device{{TaskPath: "/dev/lamp", HostPath: "/dev/lamp0", Permissions: "rw"}},
	}, r)
	r, err = p.Reserve(ctx, nil)
	must.NoError(t, err)
	must.Eq(t, device.Reservation{}, r)
	_, err = p.Reserve(ctx, []string{"radio"})
	must.EqError(t, err, "Reserve: unknown device radio")
	must.Eq(t, driver.Fatal, driver.ClassOf(err))

	measuring, cancel := context.WithCancel(ctx)
	var stats [][]device.GroupStats
	err = p.Stats(measuring, 10*time.Millisecond, func(s []device.GroupStats) {
		if stats = append(stats, s); len(stats) == 3 {
			cancel()
		}
	})
	must.Eq(t, driver.Deadline, driver.ClassOf(err))
	must.Eq(t, stats[0], stats[2])
	group := stats[0][0]
	must.Eq(t, cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L1"}, group.Kind)
	must.Eq(t, device.Stats{}, group.Devices["lamp-1"])
	lamp := group.Devices["lamp-0"]
	must.Eq(t, time.Unix(5, 0).UTC(), lamp.Time)
	must.Eq(t, device.StatValue{FloatNumerator: new(2.5), FloatDenominator: new(40.0), Unit: "W", Description: "power"}, lamp.Summary)
	must.Eq(t, map[string]device.StatValue{
		"on":    {Bool: new(false)},
		"state": {Text: new("warm"), Description: "how it? feels"},
		"hours": {IntNumerator: new(int64(3)), IntDenominator: new(int64(1000)), Unit: "h"},
	}, lamp.Values.Values)
	depth := 0
	for o := lamp.Values; ; depth++ {
		below, is := o.Nested["down"]
		if !is {
			break
		}
		o = below
	}
	must.Eq(t, 15, depth, must.Sprint("the depth is bounded"))
}

// An empty list is a fingerprint: the plugin works and has no device.
func TestDevice_emptyList(t *testing.T) {
	t.Parallel()
	p := newDeviceBench(t, ofDevices(0)).launch().Device()
	must.SliceEmpty(t, first(t, p))
}

func TestDevice_tenThousand(t *testing.T) {
	t.Parallel()
	p := newDeviceBench(t, ofDevices(10_000)).launch().Device()
	good, err := device.Check(first(t, p))
	must.NoError(t, err)
	must.Len(t, 10_000, good[0].Devices)
}

// The end of the context ends the stream in the plugin.
func TestDevice_cancel(t *testing.T) {
	t.Parallel()
	b := newDeviceBench(t, ofDevices(1))
	i := b.launch()
	_ = first(t, i.Device())
	for len(b.lines("the")) == 0 {
		must.NoError(t, i.Check(t.Context()))
	}
	must.Eq(t, []string{"end of Fingerprint"}, b.lines("the"))
}

// The next client ends the process and starts a new one, which has the same devices: a process may
// report its devices only once.
func TestDevice_takeOver(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"the same program": false, "a newer version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newDeviceBench(t, ofDevices(2))
			own := b.options.Path
			b.options.Path = filepath.Join(t.TempDir(), "plugin")
			must.NoError(t, exec.CommandContext(t.Context(), "cp", own, b.options.Path).Run())
			old := b.launch()
			before := first(t, old.Device())
			old.Detach()
			if replaced {
				must.NoError(t, exec.CommandContext(t.Context(), "cp", own, b.options.Path+".new").Run())
				must.NoError(t, os.Rename(b.options.Path+".new", b.options.Path))
			}
			next, err := b.program().Launch(t.Context(), old.Record(), keep)
			must.NoError(t, err)
			t.Cleanup(func() { must.NoError(t, next.Kill(context.Background())) })
			must.False(t, next.TakenOver())
			must.False(t, b.alive(old.Record().Process.PID), must.Sprint("one generation is in use"))
			must.Eq(t, before, first(t, next.Device()))
			must.SliceLen(t, 2, b.lines("config"))
			_, err = next.Device().Reserve(t.Context(), []string{"lamp-1"})
			must.NoError(t, err, must.Sprint("each process has the device"))
		})
	}
}
