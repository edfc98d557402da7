package conformance_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/storagetest"
)

// The page of each suite has each rule, in the words of the suite. That of drivers has each kind of task.
func TestTests_documented(t *testing.T) {
	t.Parallel()
	has := func(page, row string) {
		t.Helper()
		text, err := os.ReadFile("../../docs/" + page)
		must.NoError(t, err)
		must.StrContains(t, string(text), "\n| "+row+" |")
	}
	for page, tests := range map[string][]conformance.Test{
		"plugins.md":        drivertest.Tests(drivertest.Harness{}),
		"device-plugins.md": devicetest.Tests(devicetest.Harness{}),
		"volume-tests.md":   storagetest.Tests(storagetest.Harness{}),
	} {
		for _, one := range tests {
			has(page, fmt.Sprintf("%s | %s | %s | %s", one.ID, one.Level(), one.Doc, one.Contract))
		}
	}
	for kind := drivertest.RunForever; kind <= drivertest.Lines; kind++ {
		has("plugins.md", fmt.Sprintf("`%s`", kind))
	}
}
