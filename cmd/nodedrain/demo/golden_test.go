package demo

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests see into testdata; read the diff before you commit it")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		must.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	must.Eq(t, string(want), got)
}
