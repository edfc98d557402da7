package plugintest

import (
	"os"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// A finding shows the first line of a crash, also if the dump is long. Regression: it showed
// registers only.
func TestLauncher_log(t *testing.T) {
	t.Parallel()
	l := &launcher{dir: t.TempDir()}
	write := func(text string) { must.NoError(t, os.WriteFile(l.logFile(), []byte(text), 0o600)) }
	write("one\ntwo\x1b\n")
	must.Eq(t, "one\ntwo?\n", l.Log())
	write(strings.Repeat("line\n", 2000) + "last\n")
	must.StrHasSuffix(t, "line\nlast\n", l.Log())
	must.Eq(t, mostLog, len(l.Log()))
	write(strings.Repeat("line\n", 2000) + "panic: no health\n" + strings.Repeat("gs 0x0\n", 2000))
	must.StrHasPrefix(t, "panic: no health\ngs 0x0\n", l.Log())
	must.Eq(t, mostLog, len(l.Log()))
	write("before\npanic: no health\n")
	must.Eq(t, "before\npanic: no health\n", l.Log())
}
