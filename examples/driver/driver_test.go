package main

import (
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/plugintest"
)

// The program passes the conformance suite of drivers.
func TestConformance(t *testing.T) {
	t.Parallel()
	groups, err := cgroup.Find("/")
	if err != nil || !groups.Usable() {
		t.Skip("this user may not create control groups")
	}
	path := filepath.Join(t.TempDir(), "script")
	programs.Build(t, ".", path)
	options, err := plugintest.Read(path, "test.json")
	must.NoError(t, err)
	harness := plugintest.Harness(options)
	harness.Strict = true
	drivertest.Run(t, harness)
}
