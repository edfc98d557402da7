package plugintest

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/environment"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// DeviceOptions describe a device plugin's program. In a file they are a JSON object. With the
// config of the program the plugin has at least two devices of one kind.
type DeviceOptions struct {
	Program
	// Empty is a config with which the plugin finds no device, or empty.
	Empty json.RawMessage `json:"empty"`
	// Wrong is a config that the plugin must refuse, or empty.
	Wrong json.RawMessage `json:"wrong"`
	// Change is a command that changes the devices: others appear or disappear, or the health of
	// one changes. It is empty if the devices cannot be changed.
	Change []string `json:"change"`
	// Skips are the rules that the plugin cannot satisfy, with the reason. [DeviceHarness] adds "V3
	// change" if Change is empty.
	Skips map[string]string `json:"skips"`
	// UnitMillis is the unit of time of the suite in milliseconds; zero is a second.
	UnitMillis int `json:"unit_millis"`
}

// ReadDevices reads the options of a device plugin's program from a file.
func ReadDevices(path, file string) (DeviceOptions, error) {
	o := DeviceOptions{Program: Program{Path: path}}
	return o, read(file, &o, func() error {
		return errors.Join(checkSkips(o.Skips, devicetest.Tests(devicetest.Harness{})), environment.Check(o.Env))
	})
}

// DeviceHarness returns the harness of a device plugin's program.
func DeviceHarness(o DeviceOptions) devicetest.Harness {
	h := devicetest.Harness{
		New:   func(t devicetest.T) devicetest.Node { return newDeviceNode(t, o, o.Config) },
		Skips: o.skips(),
		Unit:  time.Duration(o.UnitMillis) * time.Millisecond,
	}
	if len(o.Empty) > 0 {
		h.Empty = func(t devicetest.T) devicetest.Node { return newDeviceNode(t, o, o.Empty) }
	}
	if len(o.Wrong) > 0 {
		h.Wrong = func(t devicetest.T) error { return newLauncher(t, o.Program).try(host.Device, o.Wrong) }
	}
	return h
}

// skips returns the skips of the file. A plugin whose devices cannot be changed fails or skips the
// rule "V1 change", and that states enough.
func (o DeviceOptions) skips() map[string]string {
	all := map[string]string{}
	if len(o.Change) == 0 {
		all["V3 change"] = `the file has no command in "change"`
	}
	maps.Copy(all, o.Skips)
	return all
}

// deviceNode is a node with a device plugin's program.
type deviceNode struct {
	*launcher
	change []string
}

var _ devicetest.Node = (*deviceNode)(nil)

func newDeviceNode(t devicetest.T, o DeviceOptions, config json.RawMessage) *deviceNode {
	n := &deviceNode{launcher: newLauncher(t, o.Program), change: o.Change}
	n.begin(t, host.Device, config)
	return n
}

// Plugin implements [devicetest.Node].
func (n *deviceNode) Plugin() device.Plugin { return n.instance.Device() }

// Change implements [devicetest.Node].
func (n *deviceNode) Change(t devicetest.T) bool {
	n.run(t, "change", n.change)
	return len(n.change) > 0
}
