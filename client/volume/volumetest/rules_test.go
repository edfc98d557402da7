package volumetest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/volume/volumetest"
)

// The page about tests of volumes has each rule, in the words of the suite.
func TestTests_documented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/volume-tests.md")
	must.NoError(t, err)
	for _, one := range volumetest.Tests() {
		must.StrContains(t, string(text), fmt.Sprintf("\n| %s | %s | %s |\n", one.ID, one.Doc, one.Contract))
	}
}
