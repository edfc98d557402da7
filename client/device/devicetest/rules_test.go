package devicetest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/device/devicetest"
)

// The page for authors of device plugins has each rule, in the words of the suite.
func TestTests_documented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/device-plugins.md")
	must.NoError(t, err)
	for _, one := range devicetest.Tests() {
		must.StrContains(t, string(text), fmt.Sprintf("\n| %s | %s | %s |\n", one.ID, one.Doc, one.Contract))
	}
}
