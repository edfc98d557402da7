//race:skip one goroutine
package scenario_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// parse reads a valid text.
func parse(t testing.TB, text string) (*scenario.Scenario, []scenario.Warning) {
	t.Helper()
	s, warnings, err := scenario.Parse("case.drain", strings.NewReader(text))
	must.NoError(t, err)
	return s, warnings
}

// print returns the printed scenario.
func print(t testing.TB, s *scenario.Scenario) string {
	t.Helper()
	var b bytes.Buffer
	must.NoError(t, scenario.Print(&b, s))
	return b.String()
}

// everything returns a canonical file with every word of the language.
func everything(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/everything.drain")
	must.NoError(t, err)
	return text
}

// A file with every word of the language is printed as it was read.
func TestParse_Everything(t *testing.T) {
	t.Parallel()
	text := string(everything(t))
	s, warnings := parse(t, text)
	must.SliceEmpty(t, warnings)
	must.Eq(t, text, print(t, s))
	must.NoError(t, s.Check())
}
