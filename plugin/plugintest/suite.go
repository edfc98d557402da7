package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/conformance"
	"github.com/seed-f9cf0b39/nodedrain/client/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/client/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/client/volume/volumetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// Suite contains the rules for one plugin.
type Suite struct {
	// Type is "driver", "device" or "storage".
	Type  string
	Tests []conformance.Test
	Skips map[string]string
}

// Open returns the suite for the plugin at path. If file names a volume, that is a storage plugin,
// and file contains its [StorageOptions]. Otherwise Open starts the program and asks it for its
// type, and file contains the options of a driver or of a device plugin. If file is empty, a driver
// gets the options of [Commands], and a device plugin gets the zero options. The error says why the
// file is not valid, or why the plugin did not start.
func Open(ctx context.Context, path, file string) (Suite, error) {
	var given struct {
		Program
		Volume string `json:"volume"`
	}
	given.Path = path
	if file != "" {
		// The type of the plugin decides the format of the file. The fields of Program are the same
		// for drivers and device plugins.
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &given)
		}
		if err != nil {
			return Suite{}, fmt.Errorf("reading the config of the test: %s: %w", file, err)
		}
	}
	if given.Volume != "" {
		return openStorage(ctx, path, file)
	}
	program := given.Program
	var kind host.Type
	var launched error
	if err := conformance.Probe(ctx, func(t conformance.T) {
		l := newLauncher(t, program)
		if launched = l.try(0, program.Config); launched != nil {
			t.Fatalf("%v\n%s", launched, l.Log())
		}
		kind = l.instance.Info().Type
	}); err != nil {
		return Suite{}, fmt.Errorf("%s%s", strings.TrimSpace(err.Error()), advice(launched))
	}
	if kind == host.Device {
		o, err := DeviceOptions{Program: program}, error(nil)
		if file != "" {
			o, err = ReadDevices(path, file)
		}
		h := DeviceHarness(o)
		return Suite{kind.String(), devicetest.Tests(h), h.Skips}, err
	}
	o, err := Commands(path)
	if file != "" {
		o, err = Read(path, file)
	}
	h := Harness(o)
	return Suite{kind.String(), drivertest.Tests(h), h.Skips}, err
}

// advice says what the author may do about an error of a launch.
func advice(err error) string {
	switch {
	case errors.Is(err, host.ErrNoHandshake):
		return "\nA storage plugin (CSI) is tested with a file that names a volume: docs/volume-tests.md describes it"
	case errors.Is(err, host.ErrConfig):
		return "\nThe plugin's config is the key \"config\" of the file of -config"
	}
	return ""
}

// openStorage starts a storage plugin once, and returns its suite.
func openStorage(ctx context.Context, path, file string) (Suite, error) {
	o, err := ReadStorage(path, file)
	if err == nil {
		err = conformance.Probe(ctx, func(t conformance.T) { newStorageNode(t, o) })
	}
	return Suite{"storage", volumetest.Tests(StorageHarness(o)), o.Skips}, err
}
