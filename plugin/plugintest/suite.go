package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/storagetest"
)

// Suite contains the rules for one plugin.
type Suite struct {
	// Type is "driver", "device" or "storage".
	Type  string
	Tests []conformance.Test
	Skips map[string]string
	// Ready fails if the plugin cannot be tested at all.
	Ready func(conformance.T)
}

// Open returns the suite for the plugin at path. If file names a volume, that is a storage plugin,
// and file contains its [StorageOptions]. Otherwise Open starts the program and requests it for its
// type, and file contains the options of a driver or of a device plugin. If file is empty, a driver
// gets the options of [Commands], and a device plugin gets the zero options. The error states why the
// file is not valid, or why the plugin did not start. Call [Probe] with the Ready of the suite before
// the tests.
func Open(ctx context.Context, path, file string) (Suite, error) {
	var shared struct {
		Program
		Volume string `json:"volume"`
	}
	shared.Path = path
	if file != "" {
		// The type of the plugin decides the format of the file. The fields of Program are the same
		// for drivers and device plugins.
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &shared)
		}
		if err != nil {
			return Suite{}, fmt.Errorf("reading the config of the test: %s: %w", file, err)
		}
	}
	if shared.Volume != "" {
		return openStorage(path, file)
	}
	kind, err := typeOf(ctx, shared.Program)
	if err != nil {
		return Suite{}, err
	}
	if kind == host.Device {
		o, err := DeviceOptions{Program: shared.Program}, error(nil)
		if file != "" {
			o, err = ReadDevices(path, file)
		}
		if err != nil {
			return Suite{}, err
		}
		h := DeviceHarness(o)
		return Suite{kind.String(), devicetest.Tests(h), h.Skips, devicetest.Ready(h)}, nil
	}
	o, err := Commands(path)
	if file != "" {
		o, err = Read(path, file)
	}
	if err != nil {
		return Suite{}, err
	}
	h := Harness(o)
	return Suite{kind.String(), drivertest.Tests(h), h.Skips, drivertest.Ready(h)}, nil
}

// typeOf starts a program and returns its type.
func typeOf(ctx context.Context, program Program) (kind host.Type, err error) {
	err = Probe(ctx, func(t conformance.T) {
		l := newLauncher(t, program)
		l.begin(t, 0, program.Config)
		kind = l.instance.Info().Type
	})
	return kind, err
}

// Probe is [conformance.Probe] with an error that has no blank lines at its end.
func Probe(ctx context.Context, start func(conformance.T)) error {
	if err := conformance.Probe(ctx, start); err != nil {
		return errors.New(strings.TrimSpace(err.Error()))
	}
	return nil
}

// openStorage returns the suite of a storage plugin.
func openStorage(path, file string) (Suite, error) {
	o, err := ReadStorage(path, file)
	if err != nil {
		return Suite{}, err
	}
	h := StorageHarness(o)
	return Suite{"storage", storagetest.Tests(h), h.Skips, storagetest.Ready(h)}, nil
}
