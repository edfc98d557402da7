package conformance_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/storagetest"
)

// The page for authors of drivers has each kind of task.
func TestKinds_documented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/plugins.md")
	must.NoError(t, err)
	for kind := drivertest.RunForever; kind <= drivertest.Lines; kind++ {
		must.StrContains(t, string(text), fmt.Sprintf("\n| `%s` |", kind))
	}
}

// Each row of a table is a rule. A rule without a check would crash in its broken plugin's test.
func TestTests_ofTheTables(t *testing.T) {
	t.Parallel()
	must.SliceLen(t, 28, drivertest.Tests(drivertest.Harness{}))
	must.SliceLen(t, 17, devicetest.Tests(devicetest.Harness{}))
	must.SliceLen(t, 11, storagetest.Tests(storagetest.Harness{}))
}
