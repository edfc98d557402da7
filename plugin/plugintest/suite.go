package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/client/conformance"
	"github.com/seed-f9cf0b39/nodedrain/client/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/client/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// Suite are the rules of one plugin.
type Suite struct {
	// Type is what the plugin says it is.
	Type  host.Type
	Tests []conformance.Test
	Skips map[string]string
}

// Open starts the program, asks it for its type, and returns the suite for it. File has the options:
// those of a driver or of a device plugin. If it is empty, a driver has the options of [Commands], and a
// device plugin the zero options. The error says why the file is of no use, or why the plugin did not
// start.
func Open(ctx context.Context, path, file string) (Suite, error) {
	program := Program{Path: path}
	if file != "" {
		// What the plugin is says which file this must be. What starts it is the same in both.
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &program)
		}
		if err != nil {
			return Suite{}, fmt.Errorf("reading the config of the test: %s: %w", file, err)
		}
	}
	var kind host.Type
	if err := conformance.Probe(ctx, func(t conformance.T) {
		l := newLife(t, program)
		l.begin(t, 0, program.Config)
		kind = l.instance.Info().Type
	}); err != nil {
		return Suite{}, err
	}
	if kind == host.Device {
		o, err := DeviceOptions{Program: program}, error(nil)
		if file != "" {
			o, err = ReadDevices(path, file)
		}
		return Suite{kind, devicetest.Tests(DeviceHarness(o)), o.Skips}, err
	}
	o, err := Commands(path)
	if file != "" {
		o, err = Read(path, file)
	}
	return Suite{kind, drivertest.Tests(Harness(o)), o.Skips}, err
}
