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

// Suite contains the rules for one plugin.
type Suite struct {
	// Type is the type that the plugin reports.
	Type  host.Type
	Tests []conformance.Test
	Skips map[string]string
}

// Open starts the program, asks it for its type, and returns the suite for it. file contains the
// options of a driver or of a device plugin. If file is empty, a driver gets the options of
// [Commands], and a device plugin gets the zero options. The error says why the file is not valid,
// or why the plugin did not start.
func Open(ctx context.Context, path, file string) (Suite, error) {
	program := Program{Path: path}
	if file != "" {
		// The type of the plugin decides the format of the file. The fields of Program are the same
		// in both.
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
