package drivertest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/driver/drivertest"
)

// The page for authors of drivers has each rule, in the words of the suite, and each kind of task.
func TestTests_documented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/plugins.md")
	must.NoError(t, err)
	for _, one := range drivertest.Tests() {
		must.StrContains(t, string(text), fmt.Sprintf("\n| %s | %s | %s |\n", one.ID, one.Doc, one.Contract))
	}
	for kind := drivertest.RunForever; kind <= drivertest.Lines; kind++ {
		must.StrContains(t, string(text), fmt.Sprintf("\n| `%s` | ", kind))
	}
}
